package sandbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

const headerRequestID = "X-Request-Id"

// ServeHTTP routes by the escaped path and rewrites nothing, so that an account in a path may be
// any text.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(headerRequestID, requestID(r))
	w.Header().Set("Cache-Control", "no-store")
	path := r.URL.EscapedPath()
	switch {
	case path == "/livez":
		s.only(w, r, http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			s.writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		})
	case path == "/readyz":
		s.only(w, r, http.MethodGet, s.handleReady)
	case strings.HasPrefix(path, "/pay/"):
		s.handlePage(w, r)
	case strings.HasPrefix(path, "/v1/"):
		s.serveAPI(w, r, path)
	case strings.HasPrefix(path, "/_"):
		s.serveControl(w, r, path)
	default:
		s.writeProblem(w, r, problemNotFound)
	}
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	if !s.authenticated(r) {
		s.writeProblem(w, r, problemUnauthenticated)
		return
	}
	switch {
	case path == "/v1/charges":
		s.only(w, r, http.MethodPost, s.sendHandler(opCharge))
	case strings.HasPrefix(path, "/v1/charges/"):
		s.only(w, r, http.MethodPost, s.handleClose)
	case path == "/v1/transfers":
		s.only(w, r, http.MethodPost, s.sendHandler(opTransfer))
	case path == "/v1/refunds":
		s.only(w, r, http.MethodPost, s.sendHandler(opRefund))
	case path == "/v1/statement":
		s.only(w, r, http.MethodGet, s.handleStatement)
	case path == "/v1/totals":
		s.only(w, r, http.MethodGet, s.handleTotals)
	case path == "/v1/returns":
		s.only(w, r, http.MethodGet, s.handleReturns)
	case strings.HasPrefix(path, "/v1/orders/"):
		s.only(w, r, http.MethodGet, s.handleQuery)
	default:
		s.writeProblem(w, r, problemNotFound)
	}
}

// serveControl serves the endpoints for tests. They need no key and are limited to this machine.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request, path string) {
	if !fromLoopback(r) {
		s.writeProblem(w, r, problemForbidden)
		return
	}
	switch {
	case path == "/_movements" && r.Method == http.MethodPost:
		s.handleMove(w, r)
	case path == "/_movements":
		s.only(w, r, http.MethodGet, s.handleMovements)
	case path == "/_faults" && r.Method == http.MethodPut:
		s.handlePutFaults(w, r)
	case path == "/_faults" && r.Method == http.MethodGet:
		s.handleGetFaults(w, r)
	case path == "/_faults":
		s.writeProblem(w, r, methodNotAllowed("GET, PUT"))
	case strings.HasPrefix(path, "/_unfreeze/"):
		s.only(w, r, http.MethodPost, s.handleUnfreeze)
	case strings.HasPrefix(path, "/_pay/"):
		s.only(w, r, http.MethodPost, s.handlePayNow)
	case strings.HasPrefix(path, "/_confirm/"):
		s.only(w, r, http.MethodPost, s.handleConfirm)
	default:
		s.writeProblem(w, r, problemNotFound)
	}
}

func (s *Server) only(w http.ResponseWriter, r *http.Request, method string, h http.HandlerFunc) {
	if r.Method != method {
		s.writeProblem(w, r, methodNotAllowed(method))
		return
	}
	h(w, r)
}

// accountHeader names the merchant account of a request. Default: that of the key.
const accountHeader = "Merchant-Account"

// authenticated compares digests, so that timing does not reveal the key's content or length.
func (s *Server) authenticated(r *http.Request) bool {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	if account := r.Header.Get(accountHeader); account != "" && account != s.cfg.Account {
		return false
	}
	digest := sha256.Sum256([]byte(key))
	return subtle.ConstantTimeCompare(digest[:], s.keyDigest[:]) == 1
}

func fromLoopback(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// requestID returns the caller's id when it is short and printable, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	if len(id) < 1 || len(id) > 64 {
		return newID("")
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return newID("")
		}
	}
	return id
}

func (s *Server) sendHandler(op string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isJSON(r) {
			s.writeProblem(w, r, problemMediaType)
			return
		}
		body, p := readBody(w, r, maxBody)
		if p != nil {
			s.writeProblem(w, r, p)
			return
		}
		send, p := decodeSend(op, body)
		if p != nil {
			s.writeProblem(w, r, p)
			return
		}
		var answer reply
		err := s.writer.do(func(tx *txn) (err error) {
			answer, err = s.submit(tx, send)
			return err
		})
		s.writeReply(w, r, answer, err)
	}
}

func (s *Server) handleQuery(w http.ResponseWriter, r *http.Request) {
	orderNo, ok := rest(r, "/v1/orders/")
	if !ok || !validOrderNo(orderNo) {
		s.writeProblem(w, r, problemOrderNotFound)
		return
	}
	answer, err := s.query(orderNo)
	s.writeReply(w, r, answer, err)
}

// writeReply sends an answer, with its fault. http.ErrAbortHandler closes the connection without an
// answer and is not logged by net/http.
func (s *Server) writeReply(w http.ResponseWriter, r *http.Request, answer reply, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if answer.delay > 0 && !s.wait(r, answer.delay) {
		panic(http.ErrAbortHandler)
	}
	switch answer.spoil {
	case spoilHold:
		s.wait(r, s.cfg.HoldTimeout)
		panic(http.ErrAbortHandler)
	case spoilDrop:
		panic(http.ErrAbortHandler)
	}
	if answer.problem != nil {
		s.writeProblem(w, r, answer.problem)
		return
	}
	s.writeJSON(w, http.StatusOK, answer.order)
}

// wait delays the answer and reports whether the time has passed: it ends early when the caller
// disconnects or the server stops.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.stopping:
	}
	return false
}

func (s *Server) handleReady(w http.ResponseWriter, r *http.Request) {
	select {
	case <-s.stopping:
		s.writeProblem(w, r, problemUnavailable)
		return
	default:
	}
	started := time.Now()
	err := s.db.View(func(*bolt.Tx) error { return nil })
	s.answer(w, r, map[string]any{"status": "ok", "dependencies": map[string]any{"database": map[string]any{
		"status": "ok", "latency_ms": float64(time.Since(started).Microseconds()) / 1000}}}, err)
}

// answer sends a value, or the error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, value any, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.writeJSON(w, http.StatusOK, value)
}

func (s *Server) answerEmpty(w http.ResponseWriter, r *http.Request, err error) {
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// fail logs an internal error and hides its details from the caller.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, errClosed) {
		s.writeProblem(w, r, problemUnavailable)
		return
	}
	s.log.Error("request failed", slog.String("request_id", w.Header().Get(headerRequestID)),
		slog.String("method", r.Method), slog.Any("error", err))
	s.writeProblem(w, r, problemInternal)
}
