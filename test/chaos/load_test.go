package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/wire"
)

// claim is an acknowledged claim.
type claim struct {
	index    int
	amount   money.Fen
	payoutID string
}

// answers collects the answers of the API that the judge compares with the stores.
type answers struct {
	mu       sync.Mutex
	creates  map[int]string              // script -> packet id, of 201, 202 and 402
	rejected map[int]bool                // 402
	claims   map[string]map[string]claim // packet -> user -> claim
	tried    map[string]map[string]grabber
	wrong    []violation // answers that are wrong by themselves
	asked    map[int]bool
	closed   map[string]wire.PacketStatus // packet -> status in the answer to its close

	grabs, acknowledged, unanswered, refused atomic.Int64
	paid, paidTooLate                        atomic.Int64 // by senders in an app
}

// violation is one broken guarantee. A final one cannot heal.
type violation struct {
	what  string
	final bool
}

func newAnswers() *answers {
	return &answers{creates: map[int]string{}, rejected: map[int]bool{}, claims: map[string]map[string]claim{},
		tried: map[string]map[string]grabber{}, asked: map[int]bool{}, closed: map[string]wire.PacketStatus{}}
}

func (a *answers) violate(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wrong = append(a.wrong, violation{fmt.Sprintf(format, args...), true})
}

// created records the answer to a create. A key has one packet for ever.
func (a *answers) created(n int, id string, rejected bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.creates[n]; ok && old != id {
		a.wrong = append(a.wrong, violation{fmt.Sprintf("create %d made packet %s, then %s", n, old, id), true})
	}
	a.creates[n] = id
	a.rejected[n] = a.rejected[n] || rejected
}

// claimed records a 2xx to a grab. A user has one claim of a packet for ever.
func (a *answers) claimed(packetID, user string, c claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acknowledged.Add(1)
	of := a.claims[packetID]
	if of == nil {
		of = map[string]claim{}
		a.claims[packetID] = of
	}
	if old, ok := of[user]; ok && old != c {
		a.wrong = append(a.wrong, violation{fmt.Sprintf("packet %s: %q got the claim %+v, then %+v", packetID, user, old, c), true})
	}
	of[user] = c
}

func (a *answers) has(packetID, user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.claims[packetID][user]
	return ok
}

func (a *answers) trying(packetID string, g grabber) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tried[packetID] == nil {
		a.tried[packetID] = map[string]grabber{}
	}
	a.tried[packetID][g.user] = g
}

// load runs scripts against the stack.
type load struct {
	app     *client.Client
	stack   *stack
	wechat  *wechat // nil: the sandbox pays
	answers *answers
	seed    uint64
	rate    int           // grabs a second
	life    time.Duration // the longest life of a packet
	busy    chan struct{}
	ended   sync.WaitGroup
}

// patience is the retry policy of a caller: it repeats a call for some seconds after a broken
// connection or 503, then gives up without an answer.
var patience = client.Retry{Tries: 100, MinPause: 50 * time.Millisecond, MaxPause: time.Second, TryTimeout: 4 * time.Second}

const (
	createPatience = 25 * time.Second
	grabPatience   = 12 * time.Second
	callers        = 300 // at once
)

func newLoad(s *stack, p plan) (*load, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: callers, MaxConnsPerHost: callers}
	app, err := client.New(s.env("HONGBAO_URL"), s.env("HONGBAO_APP_KEY"), client.WithHTTPClient(&http.Client{Transport: transport}),
		client.WithRetry(patience))
	return &load{app: app, stack: s, wechat: s.wechat, answers: newAnswers(), seed: p.seed, rate: p.rate, life: p.life,
		busy: make(chan struct{}, callers)}, err
}

// run starts packets until the length is over, each when the grabs of earlier packets have had
// their time at the wanted rate. It waits until all have ended.
func (l *load) run(ctx context.Context, length time.Duration) {
	began := time.Now()
	grabs := 0
	for n := 0; ; n++ {
		due := began.Add(time.Duration(grabs) * time.Second / time.Duration(l.rate))
		if due.Sub(began) >= length {
			break
		}
		if !wait(ctx, time.Until(due)) {
			break
		}
		s := newScript(l.seed, n, l.life)
		if l.wechat != nil {
			s.request.TotalAmount = max(s.request.TotalAmount, wechatLeast*money.Fen(s.request.ShareCount))
		}
		for _, g := range s.grabbers {
			grabs += len(g.at)
		}
		l.ended.Go(func() { l.play(ctx, s) })
	}
	l.ended.Wait()
}

// wait pauses; false: ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// call makes one call with a deadline, at most `callers` at once.
func (l *load) call(ctx context.Context, within time.Duration, do func(context.Context)) {
	l.busy <- struct{}{}
	defer func() { <-l.busy }()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	do(ctx)
}

// play runs one script.
func (l *load) play(ctx context.Context, s script) {
	var wg sync.WaitGroup
	defer wg.Wait()
	l.answers.mu.Lock()
	l.answers.asked[s.number] = true
	l.answers.mu.Unlock()
	for _, after := range s.createAgain {
		wg.Go(func() {
			if wait(ctx, after) {
				l.create(ctx, s)
			}
		})
	}
	id := l.create(ctx, s)
	if id == "" {
		return
	}
	for _, g := range s.grabbers {
		for _, at := range g.at {
			wg.Go(func() {
				if wait(ctx, at) {
					l.grab(ctx, id, g)
				}
			})
		}
	}
	if s.payAfter > 0 {
		wg.Go(func() { l.pay(ctx, id, s.payAfter) })
	}
	if s.recallAfter > 0 && wait(ctx, s.recallAfter) {
		l.recall(ctx, id)
	}
}

// create creates a packet and returns its id; "" without an answer or without a packet.
func (l *load) create(ctx context.Context, s script) (id string) {
	l.call(ctx, createPatience, func(ctx context.Context) {
		p, err := l.app.Create(ctx, s.request, s.key)
		switch {
		case err == nil:
			id = p.ID
			l.answers.created(s.number, p.ID, p.Status == wire.PacketRejected)
		case client.IsCode(err, wire.CodeFundingDeclined):
			l.answers.created(s.number, problem(err).PacketID, true)
		default:
			l.unanswered(err, "create %d", s.number)
		}
	})
	return id
}

// Pauses of a user whose packet is not open yet; after the longest the user gives up.
const (
	firstNotOpen = 500 * time.Millisecond
	lastNotOpen  = 8 * time.Second
)

// grab makes one user grab once, and repeats it while the packet is not open. A user with an
// acknowledged claim names another account from then on, which must not change where the money
// goes.
func (l *load) grab(ctx context.Context, id string, g grabber) {
	request := wire.Grab{UserID: g.user, Recipient: &wire.Recipient{Account: g.recipient}}
	if l.answers.has(id, g.user) {
		request.Recipient = &wire.Recipient{Account: "thief-of-" + g.user}
	} else {
		l.answers.trying(id, g)
	}
	for pause := firstNotOpen; ; pause *= 2 {
		var err error
		var c *wire.Claim
		l.answers.grabs.Add(1)
		had := l.answers.has(id, g.user)
		l.call(ctx, grabPatience, func(ctx context.Context) { c, err = l.app.Grab(ctx, id, request) })
		switch {
		case err == nil:
			l.answers.claimed(id, g.user, claim{c.ShareIndex, c.Amount, c.Payout.ID})
			if l.wechat != nil && !had && confirms(&paymentRow{kind: "p", account: g.account(), share: c.ShareIndex}) {
				l.confirm(ctx, id, g.user)
			}
		case had && problem(err) != nil && problem(err).Code != wire.CodeUnavailable:
			l.answers.violate("packet %s: %q has a claim and gets: %v", id, g.user, err)
		case client.IsCode(err, wire.CodeNotOpenYet) && pause <= lastNotOpen && wait(ctx, pause):
			continue
		case client.IsCode(err, wire.CodeSoldOut, wire.CodeExpired, wire.CodeNotEligible, wire.CodeNotOpenYet):
			l.answers.refused.Add(1)
		default:
			l.unanswered(err, "grab of %q in packet %s", g.user, id)
		}
		return
	}
}

// unanswered counts calls that ended without an answer. An error that the contract does not allow,
// such as 404 for an acknowledged packet, is a violation.
func (l *load) unanswered(err error, what string, args ...any) {
	p := problem(err)
	if p == nil || p.Code == wire.CodeUnavailable || p.Code == wire.CodeRequestInProgress {
		l.answers.unanswered.Add(1)
		return
	}
	l.answers.violate("%s: %v", fmt.Sprintf(what, args...), err)
}

// problem returns the API's own answer in an error; nil when there is none.
func problem(err error) *client.Problem {
	p, _ := errors.AsType[*client.Problem](err)
	return p
}
