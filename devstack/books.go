package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Books are the books of a stack that does not run: its own, and those of its
// sandbox provider. MySQLDSN and SeedKey are secret.
type Books struct {
	MySQLDSN   string // of the stack's MariaDB, which runs alone
	SeedKey    string // 32 bytes in hex
	ProviderDB string // file of the provider's database; its folder exists
}

// bulkFlags make MariaDB fast where it may start anew after a crash: it is stopped
// in order before anything else uses its data folder.
var bulkFlags = []string{"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"}

// booksGrace is how long MariaDB may take to write what it has in memory.
const booksGrace = 5 * time.Minute

// OpenBooks starts the MariaDB of a home alone, with settings that are good for
// loading much and for nothing else, brings its schema up to date by prepare and
// lets act work on the books. The home is locked meanwhile, so that no stack can
// start; a home that is not there is made. Errors: ErrRunning, what prepare and
// act return.
func OpenBooks(ctx context.Context, dir string, tools Tools, prepare func(context.Context, Env) (Keys, error), act func(context.Context, Books) error) (err error) {
	home, err := NewHome(dir)
	if err != nil {
		return err
	}
	if err := home.create(); err != nil {
		return err
	}
	lock, err := home.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	old, err := home.loadState()
	if err != nil {
		return err
	}
	if err := old.endLeftovers(); err != nil {
		return err
	}
	secrets, err := home.loadSecrets()
	if err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	part := MariaDB{Tools: tools, Dir: home.path(homeData, childMySQL), Port: port, Database: mysqlDatabase, User: mysqlUser,
		Password: secrets.MySQLPassword, Flags: bulkFlags}
	proc, err := launchLogged(ctx, part, home.LogFile(childMySQL))
	if err != nil {
		return err
	}
	defer func() {
		if !proc.Stop(booksGrace) {
			err = errors.Join(err, fmt.Errorf("MariaDB did not end within %v and was killed; `make reset` starts anew", booksGrace))
		}
	}()
	ready, cancel := context.WithTimeoutCause(ctx, startLimit, ErrNotReady)
	defer cancel()
	if err := waitReady(ready, proc, part); err != nil {
		return fmt.Errorf("%s: %w (log: %s)", childMySQL, err, home.LogFile(childMySQL))
	}
	if secrets.Keys, err = prepare(ctx, Env{MySQLDSN: part.DSN(mysqlDatabase), Keys: secrets.Keys}); err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	if err := home.saveSecrets(secrets); err != nil {
		return err
	}
	if err := os.MkdirAll(home.path(homeData, childProvider), 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return act(ctx, Books{MySQLDSN: part.DSN(mysqlDatabase), SeedKey: secrets.SeedKey, ProviderDB: home.providerDB()})
}

// launchLogged starts a part that writes to a log of its own.
func launchLogged(ctx context.Context, part Part, path string) (*Process, error) {
	cmd, err := part.Command(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open child log: %w", err)
	}
	defer log.Close() // the child has its own copy
	cmd.Stdout, cmd.Stderr = log, log
	return Launch(cmd)
}
