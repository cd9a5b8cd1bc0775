package stacktest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"hongbao/internal/devstack"
	"hongbao/test/wait"
)

const (
	mariadbUser     = "hongbao"
	mariadbPassword = "only-for-tests"
	mariadbAdmin    = "hongbao" // a database that always exists
)

// MariaDB creates an empty database on the shared server and returns its data
// source name (github.com/go-sql-driver/mysql, parseTime=true, READ COMMITTED).
// The database is dropped when the test ends.
func MariaDB(t testing.TB) (dsn string) {
	t.Helper()
	return newDatabase(t, shared.get(t, "mariadb", newMariaDB))
}

// FreshMariaDB starts a MariaDB server for this test alone, with flags besides its own, and
// returns it with the data source name of an empty database. Both end with the test.
func FreshMariaDB(t testing.TB, flags ...string) (server *Server, dsn string) {
	t.Helper()
	server = fresh(t, func(tools devstack.Tools, dir string) (*Server, error) {
		server, err := newMariaDB(tools, dir)
		if err != nil {
			return nil, err
		}
		part := server.part.(devstack.MariaDB)
		part.Flags = append(part.Flags, flags...)
		server.part = part
		return server, nil
	})
	return server, server.part.(devstack.MariaDB).DSN(mariadbAdmin)
}

func newMariaDB(tools devstack.Tools, dir string) (*Server, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return nil, err
	}
	part := devstack.MariaDB{
		Tools: tools, Dir: filepath.Join(dir, "mysql"), Port: port,
		Database: mariadbAdmin, User: mariadbUser, Password: mariadbPassword, AllDatabases: true,
		Flags: []string{"--innodb-flush-log-at-trx-commit=2", "--sync-frm=0"},
	}
	if !onDisk {
		part.Flags = append(part.Flags, "--debug-no-sync", "--innodb-flush-method=nosync")
	}
	if err := copyTemplate(part); err != nil {
		return nil, err
	}
	return &Server{Addr: part.Addr(), part: part, log: filepath.Join(dir, "mysql.log")}, nil
}

// copyTemplate fills a new data folder from one that was initialised before and
// is kept in the checkout's cache: copying takes a tenth of the time.
func copyTemplate(part devstack.MariaDB) error {
	checkout, err := devstack.FindCheckout(".")
	if err != nil {
		return err
	}
	cache := devstack.CacheDir(checkout)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("mariadb template: %w", err)
	}
	template, err := templateDir(cache, part.Tools)
	if err != nil {
		return err
	}
	lock, err := devstack.LockFile(template+".lock", true)
	if err != nil {
		return fmt.Errorf("mariadb template: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := (devstack.MariaDB{Tools: part.Tools, Dir: template}).Init(ctx); err != nil {
		return fmt.Errorf("mariadb template: %w", err)
	}
	if err := os.CopyFS(part.Dir, os.DirFS(template)); err != nil {
		return fmt.Errorf("mariadb template: %w", err)
	}
	return nil
}

// templateDir names the template after the server binary, so that an upgraded
// server gets a new one.
func templateDir(cache string, tools devstack.Tools) (string, error) {
	info, err := os.Stat(tools.MariaDB)
	if err != nil {
		return "", fmt.Errorf("mariadb template: %w", err)
	}
	name := fmt.Sprintf("mariadb-template-%d-%d", info.Size(), info.ModTime().Unix())
	return filepath.Join(filepath.Dir(cache), name), nil
}

func newDatabase(t testing.TB, server *Server) string {
	t.Helper()
	part := server.part.(devstack.MariaDB)
	name := "t_" + strings.ToLower(rand.Text())
	if err := exec(part, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := exec(part, "DROP DATABASE "+name); err != nil { // it goes with the server; the test has said what it had to
			t.Logf("%v\n%s", err, statements(part))
		}
	})
	return part.DSN(name)
}

// statements are those that the server works on.
func statements(part devstack.MariaDB) string {
	db, err := sql.Open("mysql", part.DSN(mariadbAdmin))
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	var all sql.NullString
	err = db.QueryRow("SELECT GROUP_CONCAT(CONCAT_WS(' ', id, db, command, time, state, info) SEPARATOR '\n')" +
		" FROM information_schema.processlist").Scan(&all)
	if err != nil {
		return err.Error()
	}
	return all.String
}

// notEmpty is the server's refusal to remove the folder of a database whose last file
// it is still removing, as it does in the background.
const notEmpty = 1010

// exec runs one statement of the test's own making.
func exec(part devstack.MariaDB, statement string) error {
	db, err := sql.Open("mysql", part.DSN(mariadbAdmin))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit())
	defer cancel()
	wait.Reached(wait.Limit(), func() bool {
		_, err = db.ExecContext(ctx, statement)
		my, is := errors.AsType[*mysql.MySQLError](err)
		return !is || my.Number != notEmpty
	})
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
