package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"time"
)

// packetBody is a packet as a client reads it.
type packetBody struct {
	ID              string
	Status          string
	TotalAmount     int64      `json:"total_amount"`
	ClaimedCount    int        `json:"claimed_count"`
	ClaimedAmount   int64      `json:"claimed_amount"`
	RemainingCount  int        `json:"remaining_count"`
	RemainingAmount int64      `json:"remaining_amount"`
	RefundedAmount  int64      `json:"refunded_amount"`
	CreatedAt       time.Time  `json:"created_at"`
	OpensAt         time.Time  `json:"opens_at"`
	ExpiresAt       time.Time  `json:"expires_at"`
	ClosedAt        *time.Time `json:"closed_at"`
	Funding         struct {
		Status  string
		Failure *struct{ Code string }
	}
	Failure  *struct{ Code, Message string }
	Fairness struct {
		Algorithm, Commitment string
		Seed                  *string
	}
}

// claimBody is a claim as a client reads it.
type claimBody struct {
	PacketID   string `json:"packet_id"`
	UserID     string `json:"user_id"`
	Nickname   *string
	AvatarURL  *string `json:"avatar_url"`
	ShareIndex int     `json:"share_index"`
	Amount     int64
	ClaimedAt  time.Time `json:"claimed_at"`
	Replayed   bool
	BestLuck   bool `json:"best_luck"`
	Payout     struct{ ID, Status string }
	Recipient  *string `json:"recipient_action"`
	Confirm    *struct {
		Parameters map[string]string
		ValidUntil time.Time `json:"valid_until"`
	}
}

// claimsBody is a page of claims.
type claimsBody struct {
	Items      []claimBody
	NextCursor *string `json:"next_cursor"`
}

// proofBody is a proof as a client reads it.
type proofBody struct {
	Total, Paid, Owed, Remaining, Refunding, Refunded int64
	Balanced                                          bool
	InFlight                                          int64 `json:"in_flight"`
	Confirmed                                         bool  `json:"provider_confirmed"`
	Sources                                           struct {
		Redis    *struct{ Claimed, Remaining int64 }
		Provider struct {
			Charged, Transferred, Returned, Refunded int64
			Parts                                    []struct {
				Provider, Source string
				AsOf             time.Time `json:"as_of"`
				Fees             int64
			}
		}
	}
	Differences []struct {
		What             string
		Expected, Actual int64
	}
}

// payoutBody is a payout as staff reads it.
type payoutBody struct {
	ID, Status   string
	PacketID     string  `json:"packet_id"`
	UserID       string  `json:"user_id"`
	OrderNo      *string `json:"order_no"`
	AttemptCount int     `json:"attempt_count"`
	Recipient    *string `json:"recipient_action"`
	Failure      *struct {
		Code, Message string
		Retryable     bool
		NextAction    string `json:"next_action"`
	}
	Workflow struct{ ID, URL string }
	Attempts []struct {
		No      int
		OrderNo string `json:"order_no"`
		Outcome *string
		EndedAt *time.Time `json:"ended_at"`
	}
	Timeline []struct {
		At           time.Time
		Source, What string
	}
}

// payoutsBody is a page of payouts.
type payoutsBody struct {
	Items      []payoutBody
	NextCursor *string `json:"next_cursor"`
}

func (h *fixture) packet(o owner, id string) packetBody {
	h.t.Helper()
	r := h.as(o, "GET", "/v1/packets/"+id, "")
	if r.status != http.StatusOK {
		h.t.Errorf("packet: %s", r)
	}
	var p packetBody
	r.json(h.t, &p)
	if p.Status != "rejected" && (p.ClaimedAmount+p.RemainingAmount != p.TotalAmount) {
		h.t.Errorf("claimed and remaining are not the total: %s", r)
	}
	return p
}

func (h *fixture) proof(o owner, id string) proofBody {
	h.t.Helper()
	r := h.as(o, "GET", "/v1/packets/"+id+"/proof", "")
	if r.status != http.StatusOK {
		h.t.Errorf("proof: %s", r)
	}
	var p proofBody
	r.json(h.t, &p)
	if p.Total != p.Paid+p.Owed+p.Remaining+p.Refunding+p.Refunded {
		h.t.Errorf("the parts are not the total: %s", r)
	}
	if p.Balanced != (len(p.Differences) == 0) {
		h.t.Errorf("balanced with differences: %s", r)
	}
	return p
}

// empty makes a Redis of this test's own forget everything.
func (h *fixture) empty(addr string) {
	h.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(h.t.Context(), "tcp", addr)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "FLUSHALL\r\n"); err != nil {
		h.t.Fatal(err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "+OK\r\n" {
		h.t.Fatalf("%q, %v", answer, err)
	}
}
