package simulator

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// authorisation is a recipient's agreement to receipts without a tap.
type authorisation struct {
	openid, display, state, reason, packageInfo string
	created, accepted, closed                   time.Time
}

// Authorise records an agreement that its recipient has accepted.
func (s *Server) Authorise(no, openid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.authorisations[no] = &authorisation{openid: openid, display: openid, state: "TAKING_EFFECT", created: now, accepted: now}
}

// Accept is the recipient's tap with the package of an agreement, all that the recipient's client knows.
func (s *Server) Accept(pack string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.authorisations {
		if a.packageInfo == pack && a.state == "WAIT_USER_CONFIRM" {
			a.state, a.packageInfo, a.accepted = "TAKING_EFFECT", "", time.Now()
			return true
		}
	}
	return false
}

// CloseAuthorisation ends an agreement: the recipient gives it up, or does not accept it in time.
func (s *Server) CloseAuthorisation(no string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.authorisations[no]
	if a == nil || a.state == "CLOSED" {
		return false
	}
	a.reason = "USER_CLOSE"
	if a.state == "WAIT_USER_CONFIRM" {
		a.reason = "USER_OVERDUE_UNCONFIRMED"
	}
	a.state, a.packageInfo, a.closed = "CLOSED", "", time.Now()
	return true
}

// authorisedBy returns the recipient of an accepted agreement. The caller holds the lock.
func (s *Server) authorisedBy(no string) string {
	if a := s.authorisations[no]; a != nil && a.state == "TAKING_EFFECT" {
		return a.openid
	}
	return ""
}

func (s *Server) createAuthorisation(c call) reply {
	var in struct {
		No      string `json:"out_authorization_no"`
		AppID   string `json:"appid"`
		OpenID  string `json:"openid"`
		Scene   string `json:"transfer_scene_id"`
		Display string `json:"user_display_name"`
		Notify  string `json:"authorization_notify_url"`
	}
	_, ok := decode(c.body, &in)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !ok || !outBillNo.MatchString(in.No) || !s.hasApp(in.AppID) || in.Scene == "":
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "参数错误")
	case in.OpenID == "" || strings.HasSuffix(in.OpenID, Declined):
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "openid 与 appid 不匹配")
	case in.Display == "" || utf8.RuneCountInString(in.Display) > 32:
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "user_display_name 长度错误")
	case in.Notify == "" || strings.ContainsAny(in.Notify, "?#"):
		return refusal(http.StatusBadRequest, "PARAM_ERROR", "authorization_notify_url 不能携带参数")
	}
	a := s.authorisations[in.No]
	if a == nil {
		a = &authorisation{openid: in.OpenID, display: in.Display, state: "WAIT_USER_CONFIRM", packageInfo: nonce(32), created: time.Now()}
		s.authorisations[in.No] = a
	}
	return reply{status: http.StatusOK, value: map[string]any{"out_authorization_no": in.No, "state": a.state,
		"package_info": a.packageInfo, "create_time": a.created.Format(time.RFC3339)}}
}

func (s *Server) queryAuthorisation(c call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	no := c.PathValue("no")
	a := s.authorisations[no]
	if a == nil {
		return refusal(http.StatusNotFound, "NOT_FOUND", "记录不存在")
	}
	view := map[string]any{"out_authorization_no": no, "appid": s.cfg.AppIDs[0], "openid": a.openid, "user_display_name": a.display,
		"state": a.state, "create_time": a.created.Format(time.RFC3339)}
	if !a.accepted.IsZero() {
		view["authorization_id"], view["authorize_time"] = "2012025"+no, a.accepted.Format(time.RFC3339)
	}
	if a.state == "WAIT_USER_CONFIRM" && !s.cfg.PackageOnce && c.URL.Query().Get("is_display_authorization") == "true" {
		view["package_info"] = a.packageInfo
	}
	if a.state == "CLOSED" {
		view["close_info"] = map[string]string{"close_time": a.closed.Format(time.RFC3339), "close_reason": a.reason}
	}
	return reply{status: http.StatusOK, value: view}
}
