package ticket

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	ticketKid    = "k3q5v2c7m4e2"
	ticketPacket = "3q5k9v0c1m7e2u8h4r6t"
)

var ticketNow = time.Date(2026, 2, 17, 20, 0, 0, 0, time.UTC)

// members are those of a JSON object.
type members map[string]any

func with(base members, name string, value any) members {
	out := members{}
	for n, v := range base {
		out[n] = v
	}
	if out[name] = value; value == nil {
		delete(out, name)
	}
	return out
}

var (
	ticketHeader = members{"alg": "EdDSA", "typ": "JWT", "kid": ticketKid}
	ticketBody   = members{"aud": "hongbao", "sub": "u2", "packet_id": ticketPacket, "exp": ticketNow.Add(time.Minute).Unix()}
)

// jwtOf writes a ticket by hand, so that it can be wrong in every way.
func jwtOf(t testing.TB, header, body any, sign func(text string) []byte) string {
	t.Helper()
	var parts []string
	for _, part := range []any{header, body} {
		raw, ok := part.(string)
		if !ok {
			encoded, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			raw = string(encoded)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString([]byte(raw)))
	}
	text := strings.Join(parts, ".")
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
}

func TestCheck(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	find := func(kid string) (ed25519.PublicKey, bool) { return public, kid == ticketKid }
	by := func(key ed25519.PrivateKey) func(string) []byte {
		return func(text string) []byte { return ed25519.Sign(key, []byte(text)) }
	}
	ours := by(private)
	secret := func(key []byte) func(string) []byte {
		return func(text string) []byte {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(text))
			return mac.Sum(nil)
		}
	}
	nothing := func(string) []byte { return nil }
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := jwtOf(t, ticketHeader, ticketBody, ours)
	head, body, _ := strings.Cut(good, ".")
	claim := func(name string, value any) string {
		return jwtOf(t, ticketHeader, with(ticketBody, name, value), ours)
	}
	header := func(name string, value any) string {
		return jwtOf(t, with(ticketHeader, name, value), ticketBody, ours)
	}
	for what, c := range map[string]struct {
		text string
		want error
	}{
		"a good one":                 {good, nil},
		"without typ":                {header("typ", nil), nil},
		"members of its own":         {claim("role", "vip"), nil},
		"issued ahead":               {claim("iat", ticketNow.Add(time.Hour).Unix()), nil},
		"for others too":             {claim("aud", []string{"mall", "hongbao"}), nil},
		"since now":                  {claim("nbf", ticketNow.Unix()), nil},
		"for another moment":         {claim("exp", float64(ticketNow.UnixMilli()+900)/1000), ErrExpired}, // fractions of a second are cut off
		"to the second":              {claim("exp", ticketNow.Add(time.Second).Unix()), nil},
		"none":                       {"", ErrMissing},
		"a word":                     {"ticket", ErrMalformed},
		"dots":                       {"..", ErrMalformed},
		"many dots":                  {strings.Repeat(".", MaxBytes), ErrMalformed},
		"cut off":                    {good[:len(good)-1], ErrMalformed},
		"with a blank":               {good + " ", ErrMalformed},
		"without signature":          {head + "." + body[:strings.IndexByte(body, '.')] + ".", ErrForged},
		"too long":                   {claim("more", strings.Repeat("x", MaxBytes)), ErrMalformed},
		"its body no JSON":           {jwtOf(t, ticketHeader, "{", ours), ErrMalformed},
		"its header no JSON":         {jwtOf(t, "{", ticketBody, ours), ErrMalformed},
		"its body an array":          {jwtOf(t, ticketHeader, "[]", ours), ErrMalformed},
		"its end a text":             {claim("exp", "tomorrow"), ErrMalformed},
		"its end a number as a text": {claim("exp", fmt.Sprint(ticketNow.Add(time.Minute).Unix())), ErrMalformed},
		"its end beyond all years":   {claim("exp", 1e300), ErrMalformed},
		"with an end of line":        {good + "\n", ErrMalformed},
		"Sub after sub": {jwtOf(t, ticketHeader, `{"aud":"hongbao","sub":"u3","Sub":"u2","packet_id":"`+ticketPacket+
			`","exp":4000000000}`, ours), ErrWrongSubject},
		"SUB alone": {jwtOf(t, ticketHeader, `{"aud":"hongbao","SUB":"u2","packet_id":"`+ticketPacket+`","exp":4000000000}`,
			ours), ErrWrongSubject},
		"AUD after aud": {jwtOf(t, ticketHeader, `{"aud":"mall","AUD":"hongbao","sub":"u2","packet_id":"`+ticketPacket+
			`","exp":4000000000}`, ours), ErrWrongSubject},
		"Exp after exp": {jwtOf(t, ticketHeader, `{"aud":"hongbao","sub":"u2","packet_id":"`+ticketPacket+
			`","exp":1,"Exp":4000000000}`, ours), ErrExpired},
		"sub twice": {jwtOf(t, ticketHeader, `{"aud":"hongbao","sub":"u3","sub":"u2","packet_id":"`+ticketPacket+
			`","exp":4000000000}`, ours), ErrMalformed},
		"what must be understood": {header("crit", []string{"exp"}), ErrMalformed},
		"alg none":                {jwtOf(t, with(ticketHeader, "alg", "none"), ticketBody, nothing), ErrForged},
		"alg none, signed":        {header("alg", "none"), ErrForged},
		"alg in another case":     {header("alg", "eddsa"), ErrForged},
		"HS256 by the public key": {jwtOf(t, with(ticketHeader, "alg", "HS256"), ticketBody, secret(public)), ErrForged},
		"HS256 by its PEM":        {jwtOf(t, with(ticketHeader, "alg", "HS256"), ticketBody, secret(block)), ErrForged},
		"ES256":                   {header("alg", "ES256"), ErrForged},
		"no alg":                  {header("alg", nil), ErrForged},
		"alg a number":            {header("alg", 1), ErrForged},
		"signed by a stranger":    {jwtOf(t, ticketHeader, ticketBody, by(stranger)), ErrForged},
		"with a key of its own": {
			jwtOf(t, with(ticketHeader, "jwk",
				members{"kty": "OKP", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(stranger.Public().(ed25519.PublicKey))}), ticketBody,
				by(stranger)), ErrForged},
		"another kid":      {header("kid", "k3q5v2c7m4e3"), ErrForged},
		"no kid":           {header("kid", nil), ErrForged},
		"its kid a number": {header("kid", 1), ErrForged},
		"the body of another": {strings.Join([]string{head, strings.Split(claim("sub", "u3"), ".")[1], strings.Split(good, ".")[2]}, "."),
			ErrForged},
		"of another packet":           {claim("packet_id", "3q5k9v0c1m7e2u8h4r6u"), ErrWrongSubject},
		"of no packet":                {claim("packet_id", nil), ErrWrongSubject},
		"of another user":             {claim("sub", "U2"), ErrWrongSubject},
		"of nobody":                   {claim("sub", nil), ErrWrongSubject},
		"for another user":            {claim("aud", "mall"), ErrWrongSubject},
		"for nobody":                  {claim("aud", nil), ErrWrongSubject},
		"for an empty list":           {claim("aud", []string{}), ErrWrongSubject},
		"without an end":              {claim("exp", nil), ErrNoExpiry},
		"expired just now":            {claim("exp", ticketNow.Unix()), ErrExpired},
		"expired long ago":            {claim("exp", 1), ErrExpired},
		"not valid yet":               {claim("nbf", ticketNow.Add(time.Second).Unix()), ErrNotYetValid},
		"of another packet, expired":  {jwtOf(t, ticketHeader, with(with(ticketBody, "packet_id", "x"), "exp", 1), ours), ErrWrongSubject},
		"forged, and expired as well": {jwtOf(t, ticketHeader, with(ticketBody, "exp", 1), by(stranger)), ErrForged},
	} {
		err := Check(c.text, ticketPacket, "u2", ticketNow, find)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
}

// FuzzCheck: no other text becomes a ticket, and a good one opens only its packet to its user.
func FuzzCheck(f *testing.F) {
	seed := sha256.Sum256([]byte("fuzz"))
	private := ed25519.NewKeyFromSeed(seed[:])
	public := private.Public().(ed25519.PublicKey)
	ours := func(text string) []byte { return ed25519.Sign(private, []byte(text)) }
	good := jwtOf(f, ticketHeader, ticketBody, ours)
	f.Add(good, ticketPacket, "u2")
	f.Add(good+".", ticketPacket, "u2")
	f.Add("eyJhbGciOiJub25lIn0.e30.", "", "")
	f.Add(strings.Replace(good, ".", "..", 1), ticketPacket, "u2")
	f.Fuzz(func(t *testing.T, text, id, user string) {
		err := Check(text, id, user, ticketNow, func(kid string) (ed25519.PublicKey, bool) { return public, kid == ticketKid })
		if err == nil && (!strings.HasPrefix(text, good[:strings.LastIndexByte(good, '.')+1]) || id != ticketPacket || user != "u2") {
			t.Errorf("%q opens %q to %q", text, id, user)
		}
		// Signed unchanged, whatever it says: the claims alone decide.
		signed := jwtOf(t, ticketHeader, text, ours)
		if len(signed) > MaxBytes || Check(signed, id, user, ticketNow, func(string) (ed25519.PublicKey, bool) { return public, true }) != nil {
			return
		}
		said := members{}
		if err := json.Unmarshal([]byte(text), &said); err != nil || said["sub"] != user || said["packet_id"] != id {
			t.Errorf("%s opens %q to %q: %v", text, id, user, err)
		}
	})
}
