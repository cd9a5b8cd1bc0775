package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/test/wait"
	"hongbao/wire"
)

// keepers are the files of a home that hold secrets, readable only by their owner: the stack's own,
// those for its user, and MariaDB's password file.
var keepers = []string{"secrets.json", "dev.env", "data/mysql.init.sql"}

// providerData is the folder of a home in which the sandbox keeps its state.
const providerData = "data/provider/"

// watch searches the output of a stack for secrets: all its answers, the command lines of its
// processes and, once it has ended, everything that it has written.
type watch struct {
	mu      sync.Mutex
	secrets map[string][]byte // by name
	// personal data may be in the files of the provider, which needs it.
	personal map[string][]byte
	found    map[string]bool
	marker   string // not a secret, but in every store
}

// watched is the transport of a stack's clients.
type watched struct {
	next  http.RoundTripper
	watch *watch
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var head bytes.Buffer
	_ = res.Header.Write(&head) // a buffer returns no error
	what := fmt.Sprintf("answer to %s %s: %d", req.Method, req.URL.Path, res.StatusCode)
	w.watch.look(what, head.Bytes())
	w.watch.look(what, body)
	return res, nil
}

// look records which secrets are in a text.
func (w *watch) look(what string, text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hidden := []map[string][]byte{w.secrets, w.personal}
	if strings.HasPrefix(what, providerData) {
		hidden = hidden[:1]
	}
	for _, texts := range hidden {
		for name, secret := range texts {
			if bytes.Contains(text, secret) {
				w.found[name+" in "+what] = true
			}
		}
	}
}

// learn reads the secrets of a home, and the values that they are derived from.
func (w *watch) learn(home string) error {
	text, err := os.ReadFile(filepath.Join(home, "secrets.json"))
	if err != nil {
		return err
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.secrets = map[string][]byte{}
	w.add("", members)
	seedKey, err := hex.DecodeString(string(w.secrets["seed_key"]))
	if err != nil {
		return err
	}
	w.secrets["seed_key as bytes"] = seedKey
	encoded := bytes.TrimPrefix(w.secrets["sandbox_webhook_secret"], []byte("whsec_"))
	w.secrets["webhook secret without prefix"] = encoded
	if w.secrets["webhook secret as bytes"], err = base64.StdEncoding.DecodeString(string(encoded)); err != nil {
		return err
	}
	if len(w.secrets) < 13 {
		return fmt.Errorf("only %d secrets in %s", len(w.secrets), home)
	}
	for name, secret := range w.secrets {
		if len(secret) < 16 {
			return fmt.Errorf("%s is too short to be looked for", name)
		}
	}
	return nil
}

func (w *watch) add(name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for inner, v := range value {
			w.add(strings.TrimPrefix(name+"."+inner, "."), v)
		}
	case string:
		w.secrets[name] = []byte(value)
	}
}

// plant creates a packet that stays open, because its seed is a secret as long. Its sender pays in an app: personal
// data must be found in no store. The sender's id must be found in every store, which shows that the search works.
func (s *stack) plant() error {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Limit())
	defer cancel()
	marker := rand.Text()
	secret := func(name string) string {
		text := rand.Text()
		s.watch.mu.Lock()
		defer s.watch.mu.Unlock()
		s.watch.personal[name] = []byte(text)
		return text
	}
	p, err := s.app.Create(ctx, wire.CreatePacket{SenderID: marker, TotalAmount: 300, ShareCount: 3, ExpiresInSeconds: 604800,
		Funding: &wire.CreateFunding{Method: "sandbox_app", Payer: map[string]string{"openid": secret("account of a payer")},
			ReturnURL: "https://example.com/" + secret("return address of a payer")}})
	if err != nil {
		return err
	}
	if err := s.payFor(ctx, p.ID); err != nil {
		return err
	}
	if _, err := s.app.Grab(ctx, p.ID, wire.Grab{UserID: "nobody-" + marker,
		Recipient: &wire.Recipient{Name: secret("name of a recipient")}}); err != nil {
		return err
	}
	var proof *wire.Proof
	wait.Reached(wait.Limit(), func() bool { // by then Temporal and MySQL have written it
		proof, err = s.app.Proof(ctx, p.ID)
		return err != nil || proof.Balanced && proof.InFlight == 0 && proof.Owed == 0
	})
	if err != nil || proof.InFlight > 0 || proof.Owed > 0 {
		return fmt.Errorf("packet %s is not paid: %w", p.ID, err)
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	s.watch.marker = marker
	seed := packet.DeriveSeed([32]byte(s.watch.secrets["seed_key as bytes"]), p.ID)
	s.watch.secrets["seed of an open packet as bytes"] = seed[:]
	s.watch.secrets["seed of an open packet in hex"] = []byte(hex.EncodeToString(seed[:]))
	s.watch.secrets["seed of an open packet in base64"] = []byte(base64.StdEncoding.EncodeToString(seed[:]))
	return nil
}

// payFor presses "pay" for a packet's sender, and waits until the packet is open.
func (s *stack) payFor(ctx context.Context, id string) error {
	url := s.env("HONGBAO_PROVIDER_URL") + "/_pay/" + payout.OrderNo(payout.ID(payout.KindCharge, id, 0), 1)
	var status wire.PacketStatus
	if !wait.Reached(wait.Limit(), func() bool {
		if p, err := s.app.Packet(ctx, id); err == nil {
			status = p.Status
		}
		if res, err := s.http.Post(url, "", nil); err == nil { // refused until the sandbox has the order, and once it is paid
			_ = res.Body.Close()
		}
		return status == wire.PacketOpen
	}) {
		return fmt.Errorf("packet %s is %s: its sender cannot pay", id, status)
	}
	return nil
}

// lookAtCommands searches the command lines, which every user of the machine can read.
func (s *stack) lookAtCommands() {
	for _, child := range []string{"API", "WORKER", "PROVIDER", "REDIS", "MYSQL", "TEMPORAL"} {
		line, err := os.ReadFile(filepath.Join("/proc", s.env("HONGBAO_PID_"+child), "cmdline"))
		if err == nil { // it may be down, and not every system has them
			s.watch.look("command line of "+child, line)
		}
	}
}

// leaks searches everything that a stack has written: logs, Redis, MariaDB, Temporal with every
// payload and history, the provider. The error names the secret, never its value.
func (s *stack) leaks() error {
	var marked []string
	err := filepath.WalkDir(s.home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(s.home, path)
		if err != nil {
			return err
		}
		if slices.Contains(keepers, name) {
			info, err := entry.Info()
			if err == nil && info.Mode().Perm() != 0o600 {
				err = fmt.Errorf("%s holds secrets and is %v", name, info.Mode())
			}
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.watch.look(name, content)
		if bytes.Contains(content, []byte(s.watch.marker)) {
			marked = append(marked, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, part := range []string{"redis", "mysql", "temporal", "provider"} {
		if s.watch.marker != "" && !slices.ContainsFunc(marked, func(name string) bool { return strings.HasPrefix(name, "data/"+part+"/") }) {
			err = errors.Join(err, fmt.Errorf("%s was not searched: its marker was not found", part))
		}
	}
	for found := range s.watch.found {
		err = errors.Join(err, errors.New("secret "+found))
	}
	return err
}
