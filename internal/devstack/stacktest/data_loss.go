package stacktest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"hongbao/internal/devstack"
)

// lastWrites is how many bytes of an append-only file are some ten to twenty grabs, and
// a part of one.
const lastWrites = 10_007

// RedisDataLosses are ways in which a Redis comes to lack writes that it has acknowledged.
// Each is called while the server is in use, prepares what it needs, and returns the
// harm itself: what was acknowledged after the preparation is lost, or at least the last
// of it. The server answers when the harm returns.
var RedisDataLosses = map[string]func(t testing.TB, s *Server) (harm func()){
	"emptied": func(t testing.TB, s *Server) func() {
		return func() { s.flush(t) }
	},
	"file deleted": func(t testing.TB, s *Server) func() {
		return func() {
			s.Kill()
			checkErr(t, os.RemoveAll(s.appendOnly()))
			s.Restart(t)
		}
	},
	"end of the file cut off": func(t testing.TB, s *Server) func() {
		return func() {
			s.Kill()
			files, err := filepath.Glob(filepath.Join(s.appendOnly(), "*.incr.aof"))
			if err != nil || len(files) != 1 {
				t.Fatalf("append-only files %q, %v", files, err)
			}
			info, err := os.Stat(files[0])
			checkErr(t, err)
			checkErr(t, os.Truncate(files[0], max(0, info.Size()-lastWrites)))
			s.Restart(t)
		}
	},
	"older copy restored": func(t testing.TB, s *Server) func() {
		older := filepath.Join(t.TempDir(), "older")
		s.Pause(t) // the copy is of one moment
		checkErr(t, os.CopyFS(older, os.DirFS(s.appendOnly())))
		s.Resume(t)
		return func() {
			s.Kill()
			checkErr(t, os.RemoveAll(s.appendOnly()))
			checkErr(t, os.CopyFS(s.appendOnly(), os.DirFS(older)))
			s.Restart(t)
		}
	},
}

// appendOnly is where a Redis server keeps its append-only file.
func (s *Server) appendOnly() string {
	return filepath.Join(s.part.(devstack.Redis).Dir, "appendonlydir")
}

// flush has a Redis server forget everything.
func (s *Server) flush(t testing.TB) {
	t.Helper()
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Addr)
	checkErr(t, err)
	defer conn.Close()
	_, err = fmt.Fprint(conn, "FLUSHALL\r\n")
	checkErr(t, err)
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "+OK\r\n" {
		t.Fatalf("%q, %v", answer, err)
	}
}

func checkErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
