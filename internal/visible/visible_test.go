package visible

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain 恭喜发财 ¥ é": "plain 恭喜发财 ¥ é", "\x1b[31mred\x1b]0;title\a": `\x1b[31mred\x1b]0;title\x07`, "a\nb\tc\r": `a\nb\tc\x0d`,
		"\u009b31m": `\x9b31m`, "\u202eabc\u2066\u200b\ufeff": `\u202eabc\u2066\u200b\ufeff`, "bad \xff\xfe": `bad \xff\xfe`,
		"\U000e0041": `\U000e0041`, "\u2028": `\u2028`, "\x7f": `\x7f`, "a\u034f\u115f\u3164\uffa0": `a\u034f\u115f\u3164\uffa0`,
		"a\ufe0f\U000e0101": `a\ufe0f\U000e0101`, "\u00ad\u061c\u200d\u2060": `\xad\u061c\u200d\u2060`, "\ufffd": "\ufffd",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Lines("a\nb\x1b"); got != "a\nb\\x1b" {
		t.Errorf("%q", got)
	}
}

func TestJSON(t *testing.T) {
	text, err := json.Marshal([]string{"\u009b31m\u202e\U000e0041 恭喜", "\x1b"})
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.NewReplacer(`\u009b`, "\u009b", `\u202e`, "\u202e").Replace(string(text))
	var back []string
	if err := json.Unmarshal([]byte(JSON(raw)), &back); err != nil || back[0] != "\u009b31m\u202e\U000e0041 恭喜" || back[1] != "\x1b" {
		t.Errorf("%v %q", err, back)
	}
	if strings.ContainsFunc(JSON(raw), Hidden) {
		t.Errorf("%q", JSON(raw))
	}
}
