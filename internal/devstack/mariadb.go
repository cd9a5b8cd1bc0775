package devstack

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
)

// MariaDB is a MariaDB server with one database and one user. Commits are on disk before they are acknowledged. It
// implements Part.
type MariaDB struct {
	Tools    Tools
	Dir      string // data folder; created by Init when missing
	Port     int    // on 127.0.0.1
	Database string // created when missing; letters, digits and _ only
	User     string // created when missing; letters, digits and _ only
	Password string // letters, digits, - and _ only
	// AllDatabases permits the user to create and drop databases, for tests.
	AllDatabases bool
	// Flags are further mariadbd options.
	Flags []string

	// preparing, unless nil, receives the group of the processes that create the data folder, and the zero value when they
	// have ended.
	preparing func(processGroup)
}

// Addr returns host:port for clients.
func (m MariaDB) Addr() string { return hostPort(m.Port) }

// DSN returns the data source name of a database on this server, in the form of github.com/go-sql-driver/mysql. It holds
// the password.
func (m MariaDB) DSN(database string) string { return m.dsnAt(m.Addr(), database) }

// dsnAt returns the DSN for clients that reach the server at another address, such as that of a proxy.
func (m MariaDB) dsnAt(addr, database string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s?parseTime=true", m.User, m.Password, addr, database)
}

// Command implements Part. Its first call creates the data folder, which takes about two seconds.
func (m MariaDB) Command(ctx context.Context) (*exec.Cmd, error) {
	if err := m.Init(ctx); err != nil {
		return nil, err
	}
	initFile, err := m.writeInitFile()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.tempDir(), 0o700); err != nil {
		return nil, fmt.Errorf("mariadb folder: %w", err)
	}
	args := []string{
		"--no-defaults",
		"--datadir=" + m.Dir,
		"--tmpdir=" + m.tempDir(),
		"--port=" + strconv.Itoa(m.Port),
		"--bind-address=" + loopback,
		// No Unix socket: its path may have at most 107 bytes, and the path of the data folder may be longer.
		"--socket=",
		"--skip-name-resolve",
		"--init-file=" + initFile,
		"--transaction-isolation=READ-COMMITTED",
		"--character-set-server=utf8mb4",
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-log-file-size=" + redoLogSize,
		"--max-connections=500",
		"--skip-log-bin",
		"--default-time-zone=+00:00",
	}
	args = append(args, asRoot()...)
	return exec.Command(m.Tools.MariaDB, append(args, m.Flags...)...), nil
}

// tempDir returns the folder of temporary tables. Each server has its own: a server deletes at its start all temporary
// tables in the folder, also those that another server uses.
func (m MariaDB) tempDir() string { return m.Dir + ".tmp" }

// redoLogSize keeps a new data folder small. It is sufficient for development and tests.
const redoLogSize = "64M"

// asRoot returns the option without which MariaDB refuses to run as root. Containers and build machines often have no other
// user.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// Init creates the data folder unless it exists. It creates it under a temporary name and renames it at the end, so an
// interrupted Init leaves no incomplete data folder. Temporary folders of interrupted calls are removed.
func (m MariaDB) Init(ctx context.Context) error {
	if _, err := os.Stat(m.Dir); err == nil {
		return nil
	}
	parent := filepath.Dir(m.Dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("mariadb folder: %w", err)
	}
	prefix := filepath.Base(m.Dir) + ".init-"
	stale, err := filepath.Glob(filepath.Join(globEscape(parent), prefix+"*"))
	if err != nil {
		return fmt.Errorf("mariadb folder: %w", err)
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove an interrupted initialisation: %w", err)
		}
	}
	temp, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return fmt.Errorf("mariadb folder: %w", err)
	}
	defer os.RemoveAll(temp) // does nothing after the rename
	if err := os.MkdirAll(m.tempDir(), 0o700); err != nil {
		return fmt.Errorf("mariadb folder: %w", err)
	}

	args := []string{
		"--no-defaults",
		"--datadir=./" + filepath.Base(temp), // relative: the script breaks paths at spaces
		// Root can log in only through a Unix socket, and the server opens none: no local user becomes root of the database
		// without a password.
		"--auth-root-authentication-method=socket",
		"--skip-test-db",
		"--innodb-log-file-size=" + redoLogSize,
	}
	cmd := exec.Command(m.Tools.MariaDBInstallDB, append(args, asRoot()...)...)
	cmd.Dir, cmd.Env = parent, append(os.Environ(), "TMPDIR="+m.tempDir())
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := m.prepare(ctx, cmd); err != nil {
		return fmt.Errorf("create the MariaDB data folder: %w\n%s", err, lastLines(output.Bytes(), 10))
	}
	if err := os.Rename(temp, m.Dir); err != nil {
		return fmt.Errorf("create the MariaDB data folder: %w", err)
	}
	return nil
}

// prepare runs the script that creates the data folder. The script starts mariadbd as its own child. When ctx ends, both
// are killed. When this process is killed, the kernel kills only the script; endLeftovers then kills mariadbd.
func (m MariaDB) prepare(ctx context.Context, cmd *exec.Cmd) error {
	proc, err := Launch(cmd)
	if err != nil {
		return err
	}
	if m.preparing != nil {
		m.preparing(groupOf(proc, cmd.Dir))
		defer m.preparing(processGroup{})
	}
	select {
	case <-proc.Done():
		return proc.Err()
	case <-ctx.Done():
		_ = syscall.Kill(-proc.PID(), syscall.SIGKILL)
		<-proc.Done()
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}

// globEscape returns a pattern that matches exactly path.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// writeInitFile writes the file of statements that the server executes at each start before it accepts connections. They
// create the database and the user and are idempotent.
func (m MariaDB) writeInitFile() (string, error) {
	scope := "`" + m.Database + "`.*"
	if m.AllDatabases {
		scope = "*.*"
	}
	account := fmt.Sprintf("'%s'@'%s'", m.User, loopback)
	statements := []string{
		fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4", m.Database),
		fmt.Sprintf("CREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s'", account, m.Password),
		fmt.Sprintf("ALTER USER %s IDENTIFIED BY '%s'", account, m.Password),
		fmt.Sprintf("GRANT ALL PRIVILEGES ON %s TO %s", scope, account),
	}
	path := m.Dir + ".init.sql"
	text := strings.Join(statements, ";\n") + ";\n"
	if err := replaceFile(path, []byte(text)); err != nil {
		return "", fmt.Errorf("mariadb start statements: %w", err)
	}
	return path, nil
}

// Ready implements Part: the user can log in and the database exists.
func (m MariaDB) Ready(ctx context.Context) error {
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", m.Addr()
	config.User, config.Passwd = m.User, m.Password
	config.DBName = m.Database
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return fmt.Errorf("mariadb: %w", err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("mariadb: %w", err)
	}
	return nil
}
