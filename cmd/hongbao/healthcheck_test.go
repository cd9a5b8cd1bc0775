package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hongbao/test/wait"
)

func TestHealthcheck(t *testing.T) {
	blocked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ok":
			w.WriteHeader(http.StatusNoContent)
		case "/moved":
			http.Redirect(w, r, "/ok", http.StatusFound)
		case "/mute":
			select {
			case <-blocked:
			case <-r.Context().Done():
			}
		default:
			http.Error(w, `{"reason":"redis"}`+strings.Repeat("x", 2*maxHealthBody), http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(blocked) })
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // loopback never goes there, but nothing of ours asks it either
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()

	for _, c := range []struct {
		name, args string
		code       int
		stderr     string
	}{
		{"OK", server.URL + "/ok", exitOK, ""},
		{"NotReady", server.URL + "/readyz", exitFailed, `503 Service Unavailable: {"reason":"redis"}`},
		{"Redirect", server.URL + "/moved", exitFailed, "302 Found"},
		{"NobodyThere", "http://" + gone.Addr().String(), exitFailed, "connection refused"},
		{"Mute", server.URL + "/mute", exitFailed, "deadline exceeded"},
		{"NoURL", "127.0.0.1:8080", exitUsage, "is not an http or https URL"},
		{"NoArgument", "", exitUsage, "takes one argument"},
		{"TwoArguments", "http://a http://b", exitUsage, "takes one argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			begun := time.Now()
			code := execute(t.Context(), append([]string{"healthcheck"}, strings.Fields(c.args)...), []string{"HONGBAO_LANES=64"}, &stdout, &stderr)
			if code != c.code || !strings.Contains(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 || stdout.Len() > 0 {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q, want %q", code, c.code, &stdout, &stderr, c.stderr)
			}
			if stderr.Len() > maxHealthBody+300 {
				t.Errorf("%d bytes of an answer are shown", stderr.Len())
			}
			if took := time.Since(begun); took > wait.Bound(healthTimeout+5*time.Second) {
				t.Errorf("took %v", took)
			}
		})
	}
}
