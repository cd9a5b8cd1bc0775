package simulator

import (
	"encoding/json"
	"net/http"
)

// controlRoutes are for tests in another process: loopback only, without a key.
func (s *Server) controlRoutes() {
	s.mux.HandleFunc("PUT /_faults", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Rules []Fault `json:"rules"`
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.SetFaults(in.Rules)
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("PUT /_authorizations/{no}", func(w http.ResponseWriter, r *http.Request) {
		s.Authorise(r.PathValue("no"), r.FormValue("openid"))
		w.WriteHeader(http.StatusNoContent)
	})
	s.mux.HandleFunc("POST /_pay/{no}", func(w http.ResponseWriter, r *http.Request) {
		done(w, s.Pay(r.PathValue("no"), r.FormValue("openid"), 0))
	})
	s.mux.HandleFunc("POST /_confirm/{no}", func(w http.ResponseWriter, r *http.Request) { done(w, s.Confirm(r.PathValue("no"))) })
	s.mux.HandleFunc("POST /_expire/{no}", func(w http.ResponseWriter, r *http.Request) { done(w, s.Expire(r.PathValue("no"))) })
	s.mux.HandleFunc("GET /_moved/{no}", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int{"moved": s.Moved(r.PathValue("no"))})
	})
}

func done(w http.ResponseWriter, ok bool) {
	w.WriteHeader(map[bool]int{true: http.StatusNoContent, false: http.StatusConflict}[ok])
}

// Moved returns how often money moved under a number.
func (s *Server) Moved(no string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := 0
	if t := s.transfers[no]; t != nil {
		moved += t.moved
	}
	if r := s.refunds[no]; r != nil {
		moved += r.moved
	}
	if c := s.charges[no]; c != nil && c.id != "" {
		moved++
	}
	return moved
}
