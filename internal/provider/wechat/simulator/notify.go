package simulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"
)

// deliveries is how often a notification is tried.
const deliveries = 15

// notify sends a notification until it is accepted. The caller holds the lock.
func (s *Server) notify(url, event, kind string, content map[string]any) {
	if url == "" {
		return
	}
	plain, err := json.Marshal(content)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	resource := s.seal(plain, kind)
	resource["original_type"] = kind
	body, err := json.Marshal(map[string]any{"id": s.nextID("EV-"), "create_time": stamp(time.Now()), "resource_type": "encrypt-resource",
		"event_type": event, "summary": event, "resource": resource})
	if err != nil {
		panic(err) // maps of texts
	}
	s.deliver(url, body, 1)
}

// deliver makes one try after another.
func (s *Server) deliver(url string, body []byte, try int) {
	pause := s.cfg.NotifyPause
	if try == 1 {
		pause = 0
	}
	s.after(pause, func() {
		if !s.post(url, body) && try < deliveries {
			s.deliver(url, body, try+1)
		}
	})
}

// post delivers a notification once; only 200 and 204 accept it.
func (s *Server) post(url string, body []byte) bool {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header = s.cfg.Keys[0].Headers(time.Now(), body)
	req.Header.Set("Content-Type", "application/json")
	res, err := s.client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNoContent
}
