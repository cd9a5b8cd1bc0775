package chaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"hongbao/client"
	"hongbao/wire"
)

// inspector reads every part of the stack directly.
type inspector struct {
	stack    *stack
	db       *sql.DB
	redis    *redis.Client
	temporal temporal.Client
	app      *client.Client
	key      string // of the provider's API
}

func newInspector(ctx context.Context, s *stack) (*inspector, error) {
	i := &inspector{stack: s}
	var err error
	if i.db, err = sql.Open("mysql", s.env("HONGBAO_MYSQL_DSN")); err != nil {
		return nil, err
	}
	i.redis = redis.NewClient(&redis.Options{Addr: s.env("HONGBAO_REDIS_ADDR")})
	i.temporal, err = temporal.DialContext(ctx, temporal.Options{HostPort: s.env("HONGBAO_TEMPORAL_ADDRESS"),
		Namespace: s.env("HONGBAO_TEMPORAL_NAMESPACE"),
		Logger:    log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return i, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: inspectors, MaxConnsPerHost: inspectors}
	if i.app, err = client.New(s.env("HONGBAO_URL"), s.env("HONGBAO_APP_KEY"),
		client.WithHTTPClient(&http.Client{Transport: transport})); err != nil {
		return i, err
	}
	i.key, err = s.secret("provider_key")
	return i, err
}

func (i *inspector) close() {
	_ = i.db.Close()
	_ = i.redis.Close()
	if i.temporal != nil {
		i.temporal.Close()
	}
}

// inspect checks everything. The requests per claim are made only when the rest is in order, or
// always.
func (i *inspector) inspect(ctx context.Context, a *answers, always bool) (*judgement, error) {
	b, err := readSnapshot(ctx, i.stack, i.db)
	if err != nil {
		return nil, err
	}
	verdicts, err := i.queryProvider(ctx, b)
	if err != nil {
		return nil, err
	}
	j := judge(b, a, verdicts)
	if err := errors.Join(i.handoffs(ctx, j), i.runs(ctx, j)); err != nil {
		return j, err
	}
	if always || len(j.violations) == 0 {
		i.checkAPI(ctx, j)
	}
	return j, nil
}

// queryProvider queries every order whose payment is not paid.
func (i *inspector) queryProvider(ctx context.Context, b *snapshot) (map[string]verdict, error) {
	out := map[string]verdict{}
	for _, p := range b.payments {
		if p.status == "paid" || p.orderNo == "" {
			continue
		}
		if b.transfers != nil && p.kind == "p" {
			out[p.orderNo] = wechatVerdict(b.transfers, p.orderNo)
			continue
		}
		var answer json.RawMessage
		status, err := i.stack.provider(ctx, http.MethodGet, "/v1/orders/"+p.orderNo, i.key, nil, &answer)
		if err != nil {
			return nil, err
		}
		v := verdict{Status: fmt.Sprintf("answer %d", status)}
		if status == http.StatusOK {
			if err := json.Unmarshal(answer, &v); err != nil {
				return nil, fmt.Errorf("order %s at the provider: %w", p.orderNo, err)
			}
		}
		out[p.orderNo] = v
	}
	return out, nil
}

// unfinished counts the work that is left with one cheap query, closes packets that outlast the run, and confirms for
// the recipients who confirm in the end. Of WeChat Pay the time of the others passes.
func (i *inspector) unfinished(ctx context.Context, a *answers) (n int, err error) {
	if err := i.closePaid(ctx, a); err != nil {
		return 0, err
	}
	query := `SELECT (SELECT COUNT(*) FROM payments WHERE status IN ('pending', 'sending', 'unknown')) + (SELECT COUNT(*) FROM outbox) +
		(SELECT COUNT(*) FROM packets p WHERE status NOT IN ('closed', 'rejected') AND NOT EXISTS
			(SELECT 1 FROM payments r WHERE r.packet_id = p.id AND r.kind = 'r' AND r.status IN ('failed', 'returned')))`
	if err := rows(ctx, i.db, query, func(scan func(...any) error) error { return scan(&n) }); err != nil {
		return 0, err
	}
	var waiting []*paymentRow
	query = "SELECT id, kind, packet_id, user_id, share_index, account, order_no FROM payments WHERE status = 'awaiting_recipient'"
	err = rows(ctx, i.db, query, func(scan func(...any) error) error {
		p := &paymentRow{}
		waiting = append(waiting, p)
		return scan(&p.id, &p.kind, &p.packet, &p.user, &p.share, &p.account, &p.orderNo)
	})
	for _, p := range waiting {
		w := i.stack.wechat
		switch {
		case err != nil:
			return n, err
		case w != nil && p.kind == "p" && confirms(p):
			_, err = w.tap(ctx, i.app, p.packet, p.user)
		case w != nil && p.kind == "p":
			err = w.expire(ctx, p.orderNo)
		case confirms(p):
			_, err = i.stack.provider(ctx, http.MethodPost, "/_confirm/"+url.PathEscape(p.orderNo), "", nil, nil)
		default:
			continue
		}
		n++
	}
	return n, err
}

// handoffs checks that no lane holds a hand-off, read or not, and that no closed packet has a pool.
func (i *inspector) handoffs(ctx context.Context, j *judgement) error {
	streams, lives := 0, 0
	keys := i.redis.Scan(ctx, 0, "hb:{*}:*", 1000).Iterator()
	for keys.Next(ctx) {
		key := keys.Val()
		switch {
		case strings.HasSuffix(key, "}:handoff"):
			streams++
			length, err := i.redis.XLen(ctx, key).Result()
			if err != nil {
				return err
			}
			groups, err := i.redis.XInfoGroups(ctx, key).Result()
			if err != nil {
				return err
			}
			pending := int64(0)
			for _, g := range groups {
				pending += g.Pending
			}
			if length > 0 || pending > 0 {
				j.open("%s holds %d hand-offs, %d are read and not acknowledged", key, length, pending)
			}
		case strings.HasSuffix(key, "}:live"):
			lives++
			ids, err := i.redis.ZRange(ctx, key, 0, -1).Result()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if p := j.snapshot.packets[id]; p == nil || p.status == "closed" {
					j.open("%s: packet %s has a pool in Redis, and no row or a closed one", key, id)
				}
			}
		}
	}
	if err := keys.Err(); err != nil {
		return err
	}
	if streams == 0 {
		return errors.New("no stream of hand-offs was found in Redis")
	}
	return nil
}

// runs checks that no workflow is open except those that wait for a recipient.
func (i *inspector) runs(ctx context.Context, j *judgement) error {
	waiting := map[string]bool{}
	for _, p := range j.snapshot.payments {
		if p.status == "awaiting_recipient" && p.kind == "p" {
			waiting["payout/"+p.packet+"/"+p.user] = true
		}
	}
	var token []byte
	for {
		page, err := i.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: `ExecutionStatus = "Running"`, PageSize: 500, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("running workflows: %w", err)
		}
		for _, e := range page.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			ours := strings.HasPrefix(id, "packet/") || strings.HasPrefix(id, "payout/") || strings.HasPrefix(id, "refund/") ||
				strings.HasPrefix(id, "honour/")
			if ours && !waiting[id] {
				j.open("workflow %s is still open", id)
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}

// inspectors is the number of concurrent requests to the API.
const inspectors = 16

// checkAPI checks every packet and its proof, and repeats the grab of every claim.
func (i *inspector) checkAPI(ctx context.Context, j *judgement) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	limit := make(chan struct{}, inspectors)
	ask := func(question func() error) {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if err := question(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				j.open("%v", err)
			}
		})
	}
	for _, id := range slices.Sorted(maps.Keys(j.snapshot.packets)) {
		p := j.snapshot.packets[id]
		ask(func() error { return i.checkPacket(ctx, j, p) })
		ask(func() error { return i.checkProof(ctx, p) })
	}
	for id, users := range j.answers.claims {
		for user, was := range users {
			ask(func() error {
				now, err := i.app.Grab(ctx, id, wire.Grab{UserID: user})
				switch {
				case err != nil:
					return fmt.Errorf("packet %s: repeated grab of %q: %w", id, user, err)
				case !now.Replayed || claim{now.ShareIndex, now.Amount, now.Payout.ID} != was:
					return fmt.Errorf("packet %s: %q had the claim %+v, and a repeated grab returns %+v", id, user, was, now)
				}
				return nil
			})
		}
	}
	wg.Wait()
}

func (i *inspector) checkPacket(ctx context.Context, j *judgement, p *packetRow) error {
	got, err := i.app.Packet(ctx, p.id)
	if err != nil {
		return fmt.Errorf("packet %s: %w", p.id, err)
	}
	claimed := int64(0)
	for _, c := range p.claims {
		claimed += c.amount
	}
	refunded := int64(0)
	for _, m := range j.moved["r"+p.id+"0000"] {
		refunded += m.Amount
	}
	if string(got.Status) != p.status || got.ClaimedCount != len(p.claims) || int64(got.ClaimedAmount) != claimed ||
		int64(got.RefundedAmount) != refunded {
		return fmt.Errorf("packet %s is %s, %d claims of %d fen, %d refunded; the API returns %+v", p.id, p.status, len(p.claims), claimed,
			refunded, got)
	}
	return nil
}

func (i *inspector) checkProof(ctx context.Context, p *packetRow) error {
	proof, err := i.app.Proof(ctx, p.id)
	switch {
	case err != nil:
		return fmt.Errorf("proof of packet %s: %w", p.id, err)
	case !proof.Balanced || proof.InFlight != 0 || len(proof.Differences) > 0:
		return fmt.Errorf("proof of packet %s: %+v", p.id, proof)
	}
	return nil
}

// settle waits until the judge finds nothing, and returns the last judgement and the violations
// before it. It stops at a final violation. Otherwise it waits as long as healing after a moment,
// or after the backlog last shrank: a machine may be slow, but no work may be stuck.
func (i *inspector) settle(ctx context.Context, a *answers, moment time.Time) (j *judgement, last []violation, err error) {
	least := math.MaxInt
	for {
		late := time.Since(moment) > healing
		left, err := i.unfinished(ctx, a)
		if err == nil && (left == 0 || late || j == nil) { // once at the start, for final violations
			j, err = i.inspect(ctx, a, late)
		}
		if err == nil && left < least {
			least = left
			if now := time.Now(); now.After(moment) {
				moment = now
			}
		}
		final := j != nil && slices.ContainsFunc(j.violations, func(v violation) bool { return v.final })
		switch {
		case err == nil && j != nil && (len(j.violations) == 0 || final), late:
			return j, last, err
		case !wait(ctx, pollEvery):
			return j, last, errors.Join(ctx.Err(), err)
		case err != nil:
			last = []violation{{what: err.Error()}}
		case left > 0:
			last = []violation{{what: fmt.Sprintf("%d payments, packets and rows of the outbox are not finished", left)}}
		default:
			last = j.violations
		}
	}
}

// pollEvery is long enough to leave the machine to the stack.
const pollEvery = 2 * time.Second
