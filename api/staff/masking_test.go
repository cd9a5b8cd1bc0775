package staff

import (
	"testing"
)

func TestMasked(t *testing.T) {
	for request, want := range map[string]string{
		``: ``,
		`{"order_no":"p1","account":"u<1>","amount":9007199254740991,"remark":"红包"}`:             `{"account":"u<1>","amount":9007199254740991,"order_no":"p1","remark":"红包"}`,
		`{"API_Key":"k","deep":[{"accessToken":"t","n":1}],"signature":{"a":1},"password":null}`: `{"API_Key":"***","deep":[{"accessToken":"***","n":1}],"password":"***","signature":"***"}`,
		`key=secret&amount=1`: mask,
		`{"key":`:             mask,
	} {
		if got := masked([]byte(request)); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}
