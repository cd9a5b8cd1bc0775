package packet

import (
	"errors"
	"strings"
	"testing"
)

// TestSealText: a sealed text opens with the key of its packet only, and does not show the text.
func TestSealText(t *testing.T) {
	key, other := [32]byte{1}, [32]byte{2}
	for _, text := range []string{"", "Zhang San", "张三", strings.Repeat("名", 64)} {
		sealed, err := SealText(key, "p1", text)
		if err != nil || text != "" && strings.Contains(sealed, text) || len(sealed) > 512 || (sealed == "") != (text == "") {
			t.Errorf("%q: %q, %v", text, sealed, err)
		}
		if got, err := OpenText(key, "p1", sealed); err != nil || got != text {
			t.Errorf("opened %q, %v", got, err)
		}
		if text == "" {
			continue
		}
		for what, open := range map[string]func() (string, error){
			"another key":    func() (string, error) { return OpenText(other, "p1", sealed) },
			"another packet": func() (string, error) { return OpenText(key, "p2", sealed) },
			"cut":            func() (string, error) { return OpenText(key, "p1", sealed[:len(sealed)-2]) },
			"no base64":      func() (string, error) { return OpenText(key, "p1", "?") },
		} {
			if got, err := open(); got != "" || !errors.Is(err, ErrSealedData) {
				t.Errorf("%s: %q, %v", what, got, err)
			}
		}
	}
}
