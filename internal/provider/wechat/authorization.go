package wechat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"hongbao/internal/payout"
)

// A recipient can agree to receipts without a tap (自动收款授权). Facts: pay.weixin.qq.com/doc/v3/merchant
// 4015901167 (request, 24 hours to accept, another number afterwards), 4014399423 (query).
const (
	pathAuthorize    = "/v3/fund-app/mch-transfer/user-confirm-authorization"
	pathAuthorizeNo  = pathAuthorize + "/out-authorization-no/"
	maxDisplayName   = 32
	codeNoSuchNumber = "NOT_FOUND"
)

// authorizeBody is the request for an agreement.
type authorizeBody struct {
	OutAuthorizationNo string `json:"out_authorization_no"`
	AppID              string `json:"appid"`
	OpenID             string `json:"openid"`
	Scene              string `json:"transfer_scene_id"`
	DisplayName        string `json:"user_display_name"`
	Perception         string `json:"user_recv_perception,omitempty"`
	NotifyURL          string `json:"authorization_notify_url"`
}

// authorizationAnswer is an agreement.
type authorizationAnswer struct {
	OutAuthorizationNo string    `json:"out_authorization_no"`
	OpenID             string    `json:"openid"`
	State              string    `json:"state"`
	PackageInfo        string    `json:"package_info"`
	CreateTime         time.Time `json:"create_time"`
	CloseInfo          struct {
		Reason string `json:"close_reason"`
	} `json:"close_info"`
}

var authorizationStates = map[string]payout.AuthorizationStatus{
	"WAIT_USER_CONFIRM": payout.AuthorizationPending,
	"TAKING_EFFECT":     payout.AuthorizationActive,
	"CLOSED":            payout.AuthorizationClosed,
}

// Authorize implements payout.Authorizer.
func (a *Adapter) Authorize(ctx context.Context, no, account, shown string) (payout.Authorization, error) {
	if a.cfg.Scene == "" {
		return payout.Authorization{}, fmt.Errorf("%w: no transfer scene is configured", payout.ErrAuthorizationRefused)
	}
	body, err := json.Marshal(authorizeBody{OutAuthorizationNo: no, AppID: a.cfg.PayoutAppID, OpenID: account, Scene: a.cfg.Scene,
		DisplayName: clipRunes(shown, maxDisplayName), Perception: a.cfg.Perception, NotifyURL: a.cfg.notifyURL()})
	if err != nil {
		return payout.Authorization{}, fmt.Errorf("%w: %w", payout.ErrAuthorizationRefused, err)
	}
	var requested authorizationAnswer
	err = a.get(ctx, request{method: http.MethodPost, path: pathAuthorize, body: body}, &requested)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status < http.StatusInternalServerError &&
		refused.status != http.StatusTooManyRequests {
		return payout.Authorization{}, fmt.Errorf("%w: %s: %s", payout.ErrAuthorizationRefused, refused.code, refused.message)
	}
	if err != nil {
		return payout.Authorization{}, err
	}
	out, err := a.Authorization(ctx, no, account)
	if err == nil && out.Status == payout.AuthorizationPending && out.Action == nil {
		out.Action = a.confirmAction(requested.PackageInfo, requested.CreateTime) // the query need not have it
	}
	return out, err
}

// Authorization implements payout.Authorizer.
func (a *Adapter) Authorization(ctx context.Context, no, account string) (payout.Authorization, error) {
	out := payout.Authorization{No: no, Status: payout.AuthorizationNone}
	var v authorizationAnswer
	r := request{method: http.MethodGet, path: pathAuthorizeNo + url.PathEscape(no) + "?is_display_authorization=true"}
	err := a.get(ctx, r, &v)
	if refused, ok := errors.AsType[*refusedError](err); ok && refused.status == http.StatusNotFound && refused.code == codeNoSuchNumber {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var known bool
	if out.Status, known = authorizationStates[v.State]; !known || v.OutAuthorizationNo != no || v.OpenID != account {
		return out, fmt.Errorf("%w: %s", ErrAnswer, codeUnexpected)
	}
	out.Reason = v.CloseInfo.Reason
	if out.Status == payout.AuthorizationPending {
		out.Action = a.confirmAction(v.PackageInfo, v.CreateTime)
	}
	return out, nil
}
