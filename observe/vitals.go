// Package observe says what is told of the running platform: names of metrics
// and what they are made of.
package observe

import "time"

// Vitals are the figures by which people see that money is stuck, before anybody
// asks for it. They are read from the stores, so every process tells the same.
type Vitals struct {
	// FromRedis and FromMySQL are set by who has filled in all of their part. What
	// could not be read is not told: a zero would look like good news.
	FromRedis, FromMySQL bool
	// Handoffs wait in Redis for the relay, all lanes together.
	Handoffs Backlog
	// Payments that are not at their end, and those that wait for a person, by
	// kind and status.
	Payments []PaymentBacklog
	// Overdue are packets past their expiry and not closed, by stored status.
	Overdue []PacketBacklog
	// Breaks wait for a person, by kind.
	Breaks []KindBacklog
	// Approvals wait for a second person.
	Approvals Backlog
	// Outbox are runs that are to be started or woken.
	Outbox Backlog
	// Quarantined counts hand-offs that could not be decoded.
	Quarantined int64
	// Repairs counts what the watch has put right, by kind, for ever.
	Repairs map[string]int64
	// Imbalanced counts the packets, of those posted to lately, whose ledger does not
	// add up or has an account below zero.
	Imbalanced int64
	// Suspense is what moved twice in them, in fen.
	Suspense int64
}

// Backlog is how many wait, and since when the oldest does; zero: none waits.
type Backlog struct {
	Waiting int64
	Oldest  time.Time
}

// PaymentBacklog is the backlog of one kind of payment (charge, payout, refund,
// honour) in one status.
type PaymentBacklog struct {
	Kind, Status string
	Backlog
}

// PacketBacklog is the backlog of packets in one status; Oldest is an expiry.
type PacketBacklog struct {
	Status string
	Backlog
}

// KindBacklog is the backlog of one kind of break.
type KindBacklog struct {
	Kind string
	Backlog
}
