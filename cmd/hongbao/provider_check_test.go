package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestProviderTest: the command passes a provider that works, and fails one whose key is wrong.
func TestProviderTest(t *testing.T) {
	t.Parallel()
	const key = "the-key-of-the-provider"
	url := serveSandbox(t, key)
	test := func(key, name string, flags ...string) (int, string) {
		var out bytes.Buffer
		code := execute(t.Context(), append([]string{"provider", "test", name}, flags...), []string{"HONGBAO_PROVIDER_URL=" + url,
			"HONGBAO_PROVIDER_KEY=" + key}, &out, io.Discard)
		return code, out.String()
	}
	code, out := test(key, "sandbox")
	if code != exitOK || strings.Count(out, "passed") != 7 || strings.Contains(out, "FAILED") {
		t.Errorf("%d: %s", code, out)
	}
	if code, out := test("another-key-of-nobody", "sandbox"); code != exitFailed || strings.Count(out, "FAILED") != 5 ||
		strings.Contains(out, "another-key") {
		t.Errorf("%d: %s", code, out)
	}
	if code, _ := test(key, "wechat"); code != exitUsage {
		t.Errorf("an unknown name: exit code %d", code)
	}
	code, out = test(key, "sandbox", "--json")
	var got struct {
		Passed  bool
		Results []struct{ Case, Result, Why string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || !got.Passed || len(got.Results) != 7 {
		t.Errorf("%d: %s, %v", code, out, err)
	}
}
