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
	s.mux.HandleFunc("POST /_tap/{package}", func(w http.ResponseWriter, r *http.Request) { done(w, s.Tap(r.PathValue("package"))) })
	s.mux.HandleFunc("POST /_expire/{no}", func(w http.ResponseWriter, r *http.Request) { done(w, s.Expire(r.PathValue("no"))) })
	s.mux.HandleFunc("GET /_transfers", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.Transfers()) })
}

// TransferState is what became of a transfer.
type TransferState struct {
	OutBillNo string `json:"out_bill_no"`
	OpenID    string `json:"openid"`
	Amount    int64  `json:"amount"`
	State     string `json:"state"`
	Reason    string `json:"fail_reason"`
	Moved     int    `json:"moved"` // how often its recipient got the money
}

// Transfers returns every transfer, in no order.
func (s *Server) Transfers() []TransferState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]TransferState, 0, len(s.transfers))
	for no, t := range s.transfers {
		all = append(all, TransferState{no, t.openid, t.in.Amount, t.state, t.reason, t.moved})
	}
	return all
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
