package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// lockWait is how long lock waits for a supervisor that is ending.
const lockWait = time.Second

// lock takes the lock of the home for this process. It returns an error that wraps ErrRunning when another process holds it.
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

// claimHome ends the processes of an earlier run, removes its dev.env and stack.json, checks the ports and loads the
// secrets. It runs first, so that a conflict is reported before any slow step.
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

// setUp calls Options.Setup. It may take minutes, so it publishes this process first, for status and stop, and checks the
// ports again afterwards.
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
