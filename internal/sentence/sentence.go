// Package sentence fills the sentences of staff's texts with named arguments.
package sentence

import (
	"regexp"
	"strings"
)

var (
	name = regexp.MustCompile(`\{[a-z_]+\}`)
	part = regexp.MustCompile(`\{[a-z_]+\}|\[[^\]]*\]`)
)

// Fill returns text with its arguments: {name} stands for an argument, and a part in brackets is
// left out if it lacks one. Elsewhere a missing argument leaves its {name}.
func Fill(text string, args map[string]string) string {
	return part.ReplaceAllStringFunc(text, func(p string) string {
		inner, optional := strings.CutPrefix(p, "[")
		complete := true
		inner = name.ReplaceAllStringFunc(strings.TrimSuffix(inner, "]"), func(n string) string {
			value := args[strings.Trim(n, "{}")]
			if value == "" {
				complete, value = false, n
			}
			return value
		})
		if optional && !complete {
			return ""
		}
		return inner
	})
}

// Names lists the arguments of a text in their order.
func Names(text string) []string {
	all := name.FindAllString(text, -1)
	for i, n := range all {
		all[i] = strings.Trim(n, "{}")
	}
	return all
}
