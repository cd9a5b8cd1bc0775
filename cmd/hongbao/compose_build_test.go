package main

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// composeBuildRules are the rules about the image that is built, and about what a machine
// that also runs the local stack meets.
var composeBuildRules = []composeRule{
	{
		name: "one service builds", why: "builds under one tag race for it, and the next build has what runs made again",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			var built []string
			for _, s := range p.Services {
				if s.Build != nil {
					built = append(built, s.Name)
				}
				if ours(s) && s.PullPolicy != types.PullPolicyNever {
					offend(s.Name, "pull policy %q: no registry has the image", s.PullPolicy)
				}
				if ours(s) != (s.Image == p.Services["migrate"].Image) {
					offend(s.Name, "image %q", s.Image)
				}
			}
			if !slices.Equal(built, []string{"migrate"}) {
				offend("", "built by %v", built)
			}
		},
		breaks: [][2]string{{"  pull_policy: never\n", ""}, {"command: [api]", "command: [api]\n    build: {context: .}"},
			{"command: [worker]", "command: [worker]\n    image: hongbao:other"},
			{"    build:\n      context: .\n", "    x-build:\n      context: .\n"}},
	},
	{
		name: "MySQL's health is that it answers", why: "with a changed password all that waits for it would say nothing; by socket also the " +
			"server answers that only fills the data folder",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			if check := p.Services["mysql"].HealthCheck; check == nil ||
				!slices.Equal(check.Test, []string{"CMD", "mysqladmin", "ping", "--host=127.0.0.1", "--silent"}) {
				offend("mysql", "health check %v", check)
			}
		},
		breaks: [][2]string{{"--host=127.0.0.1, --silent]", "--silent]"}, {"[CMD, mysqladmin, ping", "[CMD, mysql"}},
	},
	{
		name: "Redis speaks to its network", why: "the image's own default is another than that of the server",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			command := p.Services["redis"].Command
			if at := slices.Index(command, "--protected-mode"); at < 0 || at+1 >= len(command) || command[at+1] != "no" {
				offend("redis", "command %v", command)
			}
		},
		breaks: [][2]string{{`--protected-mode, "no", `, ""}, {`--protected-mode, "no"`, `--protected-mode, "yes"`}},
	},
	{
		name: "ports beside the local stack", why: "both run on one machine",
		check: func(p *types.Project, offend func(string, string, ...any)) {
			taken := map[string]string{}
			for _, k := range settings {
				if strings.HasPrefix(k.flag, "port-") {
					taken[k.fallback] = k.env
				}
			}
			if len(taken) < 5 {
				offend("", "the local stack has %d ports", len(taken))
			}
			for _, s := range p.Services {
				for _, port := range s.Ports {
					if other := taken[port.Published]; other != "" {
						offend(s.Name, "port %s is that of %s", port.Published, other)
					}
				}
			}
		},
		breaks: [][2]string{{"HB_API_PORT:-28080", "HB_API_PORT:-8080"},
			{`"127.0.0.1:${HB_STAFF_PORT:-28081}:`, `"127.0.0.1:${HB_STAFF_PORT:-8081}:`}},
	},
}
