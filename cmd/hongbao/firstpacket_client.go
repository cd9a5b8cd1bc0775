package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"hongbao/devstack"
)

// showClient speaks the HTTP API as an app backend and a finance tool would.
type showClient struct {
	http *http.Client
	env  devstack.Env
}

func newShowClient(env devstack.Env) *showClient {
	transport := &http.Transport{MaxIdleConnsPerHost: firstGuests}
	return &showClient{http: &http.Client{Transport: transport, Timeout: 10 * time.Second}, env: env}
}

type createRequest struct {
	SenderID         string `json:"sender_id"`
	TotalAmount      int64  `json:"total_amount"`
	ShareCount       int    `json:"share_count"`
	Greeting         string `json:"greeting"`
	ExpiresInSeconds int    `json:"expires_in_seconds"`
}

type packetAnswer struct {
	ID             string    `json:"id"`
	Status         string    `json:"status"`
	TotalAmount    int64     `json:"total_amount"`
	ClaimedAmount  int64     `json:"claimed_amount"`
	RefundedAmount int64     `json:"refunded_amount"`
	ExpiresAt      time.Time `json:"expires_at"`
}

type proofAnswer struct {
	Total     int64 `json:"total"`
	Paid      int64 `json:"paid"`
	Owed      int64 `json:"owed"`
	Remaining int64 `json:"remaining"`
	Refunding int64 `json:"refunding"`
	Refunded  int64 `json:"refunded"`
	Balanced  bool  `json:"balanced"`
}

// create makes a packet; repeating it with the same key makes no second one.
func (c *showClient) create(ctx context.Context, key string, request createRequest) (packetAnswer, error) {
	var packet packetAnswer
	call := showCall{method: http.MethodPost, url: c.env.URL + "/v1/packets", key: c.env.Keys.App, idempotencyKey: key, body: request}
	return packet, c.must(ctx, call, &packet)
}

func (c *showClient) packet(ctx context.Context, id string) (packetAnswer, error) {
	var packet packetAnswer
	call := showCall{method: http.MethodGet, url: c.env.URL + "/v1/packets/" + url.PathEscape(id), key: c.env.Keys.App}
	return packet, c.must(ctx, call, &packet)
}

func (c *showClient) proof(ctx context.Context, id string) (proofAnswer, error) {
	var proof proofAnswer
	call := showCall{method: http.MethodGet, url: c.env.URL + "/v1/packets/" + url.PathEscape(id) + "/proof", key: c.env.Keys.App}
	return proof, c.must(ctx, call, &proof)
}

// grabResult is what one guest got.
type grabResult struct {
	won    bool // else the packet was sold out
	amount int64
	err    error
}

func (c *showClient) grab(ctx context.Context, packetID, userID string) grabResult {
	var claim struct {
		Amount int64 `json:"amount"`
	}
	call := showCall{
		method: http.MethodPost, url: c.env.URL + "/v1/packets/" + url.PathEscape(packetID) + "/grabs", key: c.env.Keys.App,
		body: map[string]string{"user_id": userID},
	}
	code, problem, err := c.do(ctx, call, &claim)
	switch {
	case err != nil:
		return grabResult{err: err}
	case code == http.StatusCreated || code == http.StatusOK:
		return grabResult{won: true, amount: claim.Amount}
	case code == http.StatusConflict && problem.Code == "sold_out":
		return grabResult{}
	default:
		return grabResult{err: fmt.Errorf("%w answer to a grab: %d %s", errUnexpected, code, problem.Code)}
	}
}

// payoutStatuses counts the payouts of a packet by status, over all pages.
func (c *showClient) payoutStatuses(ctx context.Context, packetID string) (map[string]int, error) {
	counts := map[string]int{}
	query := url.Values{"packet_id": {packetID}, "limit": {"200"}}
	for {
		var page struct {
			Items []struct {
				Status string `json:"status"`
			} `json:"items"`
			NextCursor *string `json:"next_cursor"`
		}
		call := showCall{method: http.MethodGet, url: c.env.StaffURL + "/v1/staff/payouts?" + query.Encode(), key: c.env.Keys.Finance}
		if err := c.must(ctx, call, &page); err != nil {
			return nil, err
		}
		for _, payout := range page.Items {
			counts[payout.Status]++
		}
		if page.NextCursor == nil {
			return counts, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// showCall is one HTTP request.
type showCall struct {
	method, url    string
	key            string // bearer key
	idempotencyKey string // "" = none
	body           any    // JSON; nil = none
}

// problem is the part of an error answer that is for programs.
type problem struct {
	Code string `json:"code"`
}

// must makes a call whose answer has to be a 2xx.
func (c *showClient) must(ctx context.Context, call showCall, answer any) error {
	code, problem, err := c.do(ctx, call, answer)
	if err == nil && code/100 != 2 {
		err = fmt.Errorf("%w answer to %s %s: %d %s", errUnexpected, call.method, call.url, code, problem.Code)
	}
	return err
}

// do makes a call and repeats it while the answer is 503 or the connection
// breaks: everything it calls may be repeated.
func (c *showClient) do(ctx context.Context, call showCall, answer any) (int, problem, error) {
	var payload []byte
	if call.body != nil {
		var err error
		if payload, err = json.Marshal(call.body); err != nil {
			return 0, problem{}, fmt.Errorf("encode request: %w", err)
		}
	}
	for {
		code, problem, err := c.once(ctx, call, payload, answer)
		if err == nil && code != http.StatusServiceUnavailable {
			return code, problem, nil
		}
		if waitErr := sleep(ctx, showPoll); waitErr != nil {
			if err == nil {
				err = waitErr
			}
			return code, problem, fmt.Errorf("%s %s: %w", call.method, call.url, err)
		}
	}
}

// maxAnswerBytes is far above a page of 200 payouts.
const maxAnswerBytes = 4 << 20

func (c *showClient) once(ctx context.Context, call showCall, payload []byte, answer any) (int, problem, error) {
	request, err := http.NewRequestWithContext(ctx, call.method, call.url, bytes.NewReader(payload))
	if err != nil {
		return 0, problem{}, err
	}
	request.Header.Set("Authorization", "Bearer "+call.key)
	if payload != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if call.idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", call.idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, problem{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return 0, problem{}, err
	}
	if response.StatusCode/100 == 2 {
		return response.StatusCode, problem{}, json.Unmarshal(text, answer)
	}
	var p problem
	_ = json.Unmarshal(text, &p) // not from us, then: the status code says it
	return response.StatusCode, p, nil
}
