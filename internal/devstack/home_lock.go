package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockWait lets a supervisor that is just ending give its lock up.
const lockWait = time.Second

// lock takes the home for this process, or returns ErrRunning.
func (h Home) lock(ctx context.Context) (*FileLock, error) {
	deadline := time.Now().Add(lockWait)
	for {
		lock, err := LockFile(h.path(homeLock), false)
		switch {
		case !errors.Is(err, ErrLocked):
			return lock, err
		case time.Now().After(deadline) || ctx.Err() != nil:
			return nil, fmt.Errorf("%w in %s", ErrRunning, h.dir)
		}
		pause(ctx, readyPollInterval)
	}
}

// claimHome cleans up after an earlier run and checks what must be free, before
// anything is started and before anything takes its time.
func (s *supervisor) claimHome() error {
	if err := removeFile(s.home.EnvFile()); err != nil {
		return err
	}
	old, err := s.home.loadState()
	if err != nil {
		return err
	}
	if err := old.endLeftovers(); err != nil {
		return err
	}
	if err := removeFile(s.home.path(homeState)); err != nil {
		return err
	}
	if err := s.options.Ports.check(); err != nil {
		return err
	}
	if err := s.home.rotateLogs(); err != nil {
		return err
	}
	s.secrets, err = s.home.loadSecrets()
	return err
}

// setUp gets the tools, in a home that is claimed. It may take minutes, so status and
// stop can already find this process, and the ports are looked at once more after it.
func (s *supervisor) setUp(ctx context.Context) error {
	if s.options.Setup == nil {
		return nil
	}
	if err := s.publish(); err != nil {
		return err
	}
	var err error
	if s.options.Tools, err = s.options.Setup(ctx); err == nil {
		err = s.options.Ports.check()
	}
	if err != nil {
		return errors.Join(err, removeFile(s.home.path(homeState)))
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}
