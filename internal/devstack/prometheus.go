package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Prometheus holds the absolute paths of the two programs with which tests check dashboards and alerts.
type Prometheus struct {
	Server   string // prometheus, the server
	Promtool string // promtool, which checks rules
}

// packagePrometheus is Debian's package of both programs. Installing it would start a service, so it is only unpacked.
const packagePrometheus = "prometheus"

// FindPrometheus searches for the programs in cacheDir, then on PATH. The error is a *MissingToolsError that names the
// missing ones.
func FindPrometheus(cacheDir string) (Prometheus, error) {
	var found Prometheus
	missing := &MissingToolsError{Packages: []string{packagePrometheus}}
	for program, target := range map[string]*string{"prometheus": &found.Server, "promtool": &found.Promtool} {
		path, ok := lookup(cacheDir, program)
		if !ok {
			missing.Programs = append(missing.Programs, program)
		}
		*target = path
	}
	if len(missing.Programs) > 0 {
		return Prometheus{}, missing
	}
	return found, nil
}

// unpackPrometheus downloads Debian's package and unpacks the two programs into cache, unless they are there. It needs root
// only to update the package lists.
func (s Setup) unpackPrometheus(ctx context.Context, cache string) error {
	if _, err := FindPrometheus(cache); err == nil {
		return nil
	}
	if s.NoInstall {
		return fmt.Errorf("%w: %s; put prometheus and promtool on PATH", ErrInstallForbidden, packagePrometheus)
	}
	for _, program := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: this system has no %s; put prometheus and promtool on PATH", ErrCannotInstall, program)
		}
	}
	s.printf("downloading Debian's package %s for two programs of the tests; its service is not installed", packagePrometheus)
	dir, err := os.MkdirTemp(cache, "prometheus-")
	if err != nil {
		return fmt.Errorf("unpack prometheus: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := s.download(ctx, dir, packagePrometheus); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(dir, packagePrometheus+"_*.deb"))
	if err != nil || len(archives) != 1 {
		return errors.Join(fmt.Errorf("unpack prometheus: apt-get left %q", archives), err)
	}
	if err := s.quietly(exec.CommandContext(ctx, "dpkg-deb", "-x", archives[0], dir), "dpkg-deb"); err != nil {
		return err
	}
	for _, program := range []string{"prometheus", "promtool"} {
		if err := os.Rename(filepath.Join(dir, "usr", "bin", program), filepath.Join(cache, program)); err != nil {
			return fmt.Errorf("move %s to the tool cache: %w", program, err)
		}
	}
	return nil
}

// download downloads the archive of a package into dir. After a failure it updates the package lists, which may be old, and
// tries once more.
func (s Setup) download(ctx context.Context, dir, pkg string) error {
	get := func() error {
		cmd := exec.CommandContext(ctx, "apt-get", "download", pkg, "-o", "APT::Sandbox::User=root")
		cmd.Dir = dir
		return s.quietly(cmd, "apt-get")
	}
	if haveAptLists() {
		if err := get(); err == nil || ctx.Err() != nil {
			return err
		}
	}
	s.printf("the package lists are empty or old: apt-get update")
	prefix, err := rootPrefix("apt-get update")
	if err != nil {
		return err
	}
	if err := s.apt(ctx, prefix, "apt-get", "update"); err != nil {
		return err
	}
	return get()
}
