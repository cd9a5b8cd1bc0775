package devstack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// replaceFile writes a private file (0600) atomically: a reader sees the old or the new content, never a part of it.
func replaceFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // does nothing after the rename
	if _, err := temp.Write(content); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// FileLock is an exclusive lock on a file. The kernel releases it when the process that holds it ends.
type FileLock struct{ file *os.File }

// LockFile takes the lock on path, whose file it creates when missing. While another process holds the lock, LockFile waits
// without limit (wait), or returns an error that wraps ErrLocked.
func LockFile(path string, wait bool) (*FileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return &FileLock{file: file}, nil
}

// Unlock releases the lock. The file remains: if it were removed, two processes could lock two files of one name.
func (l *FileLock) Unlock() error { return l.file.Close() }

// lastLines returns at most n lines from the end of text.
func lastLines(text []byte, n int) []byte {
	text = bytes.TrimRight(text, "\n")
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return bytes.Join(lines, []byte("\n"))
}
