package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	tlog "go.temporal.io/sdk/log"

	"hongbao/internal/devstack"
	"hongbao/internal/devstack/stacktest"
	"hongbao/internal/pool"
)

// instruction is one instruction of a Dockerfile.
type instruction struct{ word, rest string }

// dockerfile splits a Dockerfile into instructions: comments go, lines that end
// in a backslash go on.
func dockerfile(text string) (out []instruction) {
	more := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		part, continued := strings.CutSuffix(line, "\\")
		if more {
			out[len(out)-1].rest += " " + strings.TrimSpace(part)
		} else {
			word, rest, _ := strings.Cut(part, " ")
			out = append(out, instruction{word, strings.TrimSpace(rest)})
		}
		more = continued
	}
	return out
}

var (
	goImage   = regexp.MustCompile(`^golang:(\d+\.\d+)\.(\d+)-[a-z]+[0-9.]*$`)
	buildStep = regexp.MustCompile(`CGO_ENABLED=0 go build .*-o (/\S+) \./cmd/hongbao$`)
	goVersion = regexp.MustCompile(`(?m)^go (\d+\.\d+)\.(\d+)$`)
)

// imageOffences checks a Dockerfile against the module that it builds.
func imageOffences(text, gomod string) (out []string) {
	offend := func(ok bool, what string) {
		if !ok {
			out = append(out, what)
		}
	}
	var bases []string
	last := map[string]string{} // the last instruction of a kind in the last stage
	var copies, runs []string
	for _, i := range dockerfile(text) {
		switch i.word {
		case "FROM":
			bases = append(bases, strings.Fields(i.rest)[0])
			last, copies = map[string]string{}, nil
		case "COPY":
			copies = append(copies, i.rest)
		case "RUN":
			runs = append(runs, i.rest)
		}
		last[i.word] = i.rest
	}
	if len(bases) != 2 {
		return []string{"wants a stage that builds and one that runs"}
	}
	image, module := goImage.FindStringSubmatch(bases[0]), goVersion.FindStringSubmatch(gomod)
	if image == nil || module == nil {
		return append(out, "FROM "+bases[0]+" is not Go of an exact version and system")
	}
	have, _ := strconv.Atoi(image[2])
	want, _ := strconv.Atoi(module[2])
	offend(image[1] == module[1] && have >= want, "Go "+image[1]+"."+image[2]+" builds what go.mod wants "+module[1]+"."+module[2]+" for")
	offend(bases[1] == "scratch", "the image is built on "+bases[1]+", not on nothing")
	built := ""
	for _, run := range runs {
		if m := buildStep.FindStringSubmatch(run); m != nil {
			built = m[1]
		}
	}
	offend(built != "", "no static build of ./cmd/hongbao")
	offend(slices.Contains(copies, "--from=build "+built+" /hongbao"), "what is built, "+built+", is not copied to /hongbao")
	offend(last["ENTRYPOINT"] == `["/hongbao"]`, "ENTRYPOINT "+last["ENTRYPOINT"])
	offend(last["CMD"] == "", "a CMD: the command is docker-compose.yml's")
	user, _, _ := strings.Cut(last["USER"], ":")
	uid, err := strconv.Atoi(user)
	offend(err == nil && uid > 0, "USER "+last["USER"]+" may be root; a name is unknown without /etc/passwd")
	offend(slices.ContainsFunc(copies, func(c string) bool {
		return strings.HasPrefix(c, "--from=build --chown="+last["USER"]+" ") && strings.HasSuffix(c, " /data")
	}),
		"no /data that belongs to USER "+last["USER"]+": a volume there would belong to root")
	return out
}

func TestDockerfile(t *testing.T) {
	text, gomod := readRepo(t, "Dockerfile"), readRepo(t, "go.mod")
	for _, offence := range imageOffences(text, gomod) {
		t.Error(offence)
	}
	version := goVersion.FindStringSubmatch(gomod)
	for _, b := range [][2]string{
		{"golang:" + version[1] + ".", "golang:1.25."}, {"-alpine", " AS build # -alpine"}, {"FROM scratch", "FROM alpine:latest"},
		{"CGO_ENABLED=0 ", ""}, {"USER 65532:65532", "USER 0:0"}, {"USER 65532:65532", ""}, {`["/hongbao"]`, `["/hongbaos"]`},
		{`ENTRYPOINT ["/hongbao"]`, "ENTRYPOINT /hongbao"}, {"-o /out/hongbao", "-o /out/hb"}, {"--chown=65532:65532", ""},
	} {
		if !strings.Contains(text, b[0]) {
			t.Errorf("the file has no %q any more: say another way to break it", b[0])
		} else if len(imageOffences(strings.Replace(text, b[0], b[1], 1), gomod)) == 0 {
			t.Errorf("not caught: %q instead of %q", b[1], b[0])
		}
	}
}

// ignored reports whether a file is kept out of the build context. It knows the
// forms that .dockerignore uses: names at the top, and **/ for any depth.
func ignored(patterns []string, file string) bool {
	for _, p := range patterns {
		anywhere, deep := strings.CutPrefix(p, "**/")
		parts := strings.Split(file, "/")
		for i := range parts {
			name := strings.Join(parts[:i+1], "/")
			if deep {
				name = parts[i]
			}
			if ok, err := path.Match(anywhere, name); err == nil && ok {
				return true
			}
		}
	}
	return false
}

func ignorePatterns(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// TestDockerContext: the build context holds every file that `go build` reads,
// and neither history, tests, state nor settings.
func TestDockerContext(t *testing.T) {
	patterns := ignorePatterns(readRepo(t, ".dockerignore"))
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Dir,Standard,Module,GoFiles,EmbedFiles", "./cmd/hongbao")
	list.Dir = checkout
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	needed := []string{"go.mod", "go.sum"}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var p struct {
			Dir                 string
			Standard            bool
			Module              struct{ Main bool }
			GoFiles, EmbedFiles []string
		}
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if p.Standard || !p.Module.Main {
			continue
		}
		dir, err := filepath.Rel(top, p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Concat(p.GoFiles, p.EmbedFiles) {
			needed = append(needed, filepath.ToSlash(filepath.Join(dir, name)))
		}
	}
	if len(needed) < 100 {
		t.Fatalf("only %d files are needed: %q", len(needed), needed)
	}
	for _, file := range needed {
		if ignored(patterns, file) {
			t.Errorf("%s is needed and kept out of the build context", file)
		}
	}
	for _, file := range []string{".git/HEAD", ".env", ".hongbao/dev.env", ".cache/bin/temporal", "cmd/hongbao/compose_test.go",
		"internal/packet/testdata/split_vectors.json", "README.md", "deploy/mysql/temporal-user.sh"} {
		if !ignored(patterns, file) {
			t.Errorf("%s is in the build context", file)
		}
	}
}

// shellScripts are the scripts that docker-compose.yml mounts.
func shellScripts(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(checkout, "deploy"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".sh" {
			out = append(out, name)
		}
		return err
	})
	if err != nil || len(out) < 3 {
		t.Fatalf("scripts %q: %v", out, err)
	}
	return out
}

// TestDeployScripts: every script parses, in the shell of the images (sh) and in bash.
func TestDeployScripts(t *testing.T) {
	for _, script := range shellScripts(t) {
		for _, shell := range []string{"sh", "bash"} {
			if out, err := exec.CommandContext(t.Context(), shell, "-n", script).CombinedOutput(); err != nil {
				t.Errorf("%s -n %s: %v\n%s", shell, script, err, out)
			}
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(text, []byte("#!/bin/sh\n")) || !bytes.Contains(text, []byte("set -eu")) || bytes.Contains(text, []byte("\r")) {
			t.Errorf("%s: begins with #!/bin/sh, stops at errors (set -eu), has no carriage returns", script)
		}
	}
}

// TestComposeRedis starts the real server with the flags of docker-compose.yml
// and asks the pool whether they are good enough to take grabs.
func TestComposeRedis(t *testing.T) {
	p, err := loadCompose(t.Context(), readRepo(t, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	command := p.Services["redis"].Command
	if len(command) == 0 || command[0] != "redis-server" {
		t.Fatalf("command %q", command)
	}
	tools, err := devstack.FindTools(devstack.CacheDir(checkout))
	if err != nil {
		t.Fatal(err)
	}
	port, err := devstack.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	server := exec.CommandContext(ctx, tools.RedisServer, append(slices.Clone(command[1:]), "--port", strconv.Itoa(port), "--bind",
		"127.0.0.1", "--dir", t.TempDir())...)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	redis, err := openPool(ctx, pool.Config{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Lanes: 1}, nil,
		slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		_ = server.Wait()
		t.Fatalf("%v\n%s", err, &log)
	}
	defer func() { _ = redis.Close() }()
	if err := redis.Durable(ctx); err != nil {
		t.Error(err)
	}
}

// TestComposeNamespace runs the one-shot's script, twice, against a real server
// and looks for what it promises.
func TestComposeNamespace(t *testing.T) {
	t.Parallel()
	address, _ := stacktest.Temporal(t)
	tools, err := devstack.FindTools(devstack.CacheDir(checkout))
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "compose"
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(checkout, "deploy", "temporal", "namespace.sh"))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(tools.Temporal)+":"+os.Getenv("PATH"), "HOME="+t.TempDir(),
			"TEMPORAL_ADDRESS="+address, "TEMPORAL_NAMESPACE="+namespace, "RETENTION=168h")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "is ready") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	c, err := client.DialContext(t.Context(),
		client.Options{HostPort: address, Namespace: namespace, Logger: tlog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	described, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	if got := described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != devstack.Retention {
		t.Errorf("retention %v, want %v", got, devstack.Retention)
	}
	for _, name := range devstack.SearchAttributes {
		if _, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: name +
			` = "x"`}); err != nil {
			t.Errorf("search attribute %s: %v", name, err)
		}
	}
}
