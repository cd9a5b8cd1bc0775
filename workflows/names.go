// Package workflows holds the durable programs: a packet's life, a payout, a
// refund. They hold no authority: the row is the program counter (rule R3), a
// run reads it and goes on from there, so any start may be repeated.
package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Task queues. Drains have their own, so that long ones never hold up payments.
const (
	TaskQueue      = "hongbao"
	DrainTaskQueue = "hongbao-drain"
)

// Names under which the workflows are registered.
const (
	PacketWorkflow = "Packet"
	PayoutWorkflow = "Payout"
	RefundWorkflow = "Refund"
	ChargeWorkflow = "Charge"
	CanaryWorkflow = "Canary"
)

// Signals.
const (
	// SignalClose tells a packet's workflow why to close (packet.CloseReason); the first reason wins.
	SignalClose = "close"
	// SignalWake tells a run to read its row again now.
	SignalWake = "wake"
)

// Search attributes. The first four are set at start, PayoutStatus and
// FailureCode only when a payment leaves the happy path: each upsert costs.
var (
	AttrApp          = temporal.NewSearchAttributeKeyKeyword("App")
	AttrPacketID     = temporal.NewSearchAttributeKeyKeyword("PacketID")
	AttrUserID       = temporal.NewSearchAttributeKeyKeyword("UserID")
	AttrProvider     = temporal.NewSearchAttributeKeyKeyword("Provider")
	AttrPayoutStatus = temporal.NewSearchAttributeKeyKeyword("PayoutStatus")
	AttrFailureCode  = temporal.NewSearchAttributeKeyKeyword("FailureCode")
)

// PacketID returns the workflow id of a packet.
func PacketID(packetID string) string { return "packet/" + packetID }

// PayoutID returns the workflow id of a claim's payout.
func PayoutID(packetID, userID string) string { return "payout/" + packetID + "/" + userID }

// RefundID returns the workflow id of refund n of a packet: 0 is the remainder.
func RefundID(packetID string, n int) string { return fmt.Sprintf("refund/%s/%d", packetID, n) }

// HonourID returns the workflow id of promise n of a packet, once people have decided to
// keep it: its user's claims may have a run of their own that waits for people.
func HonourID(packetID string, n int) string { return fmt.Sprintf("honour/%s/%d", packetID, n) }

// ChargeID returns the workflow id of questions about a charge whose packet's
// run has gone on.
func ChargeID(packetID string) string { return "charge/" + packetID }

// PaymentWorkflowID returns the workflow id that carries out a payment, "" for
// a charge, which its packet's workflow carries out.
func PaymentWorkflowID(p payout.Payment) string {
	switch p.Kind {
	case payout.KindPayout:
		return PayoutID(p.PacketID, p.UserID)
	case payout.KindHonour:
		return numbered(HonourID, p)
	case payout.KindRefund:
		return numbered(RefundID, p)
	}
	return ""
}

func numbered(id func(packetID string, n int) string, p payout.Payment) string {
	parts, err := payout.Parse(p.ID)
	if err != nil {
		return ""
	}
	return id(p.PacketID, parts.Number)
}

// PayoutInput starts a payout: with the claim (the relay, first of all), or
// with the payment's id alone (a decision, a notification, a repair).
type PayoutInput struct {
	Claim     *packet.Claim `json:"claim,omitempty"`
	PaymentID string        `json:"payment_id"`
	Console   Console       `json:"console,omitempty"`
}

// RefundInput starts a refund.
type RefundInput struct {
	PaymentID string  `json:"payment_id"`
	PacketID  string  `json:"packet_id"`
	Console   Console `json:"console,omitempty"`
}

// PacketInput starts a packet's life.
type PacketInput struct {
	packet.Packet
	Console Console `json:"console,omitempty"`
}

// Console is where people's browsers find the console, for links in the details of
// a run; "": no links. Who starts a run says it, and a run keeps it: a run reads no
// configuration, which would be another one when it is replayed.
type Console = string

func amountOf(f money.Fen) string { return f.String() }

// Timeouts. ProviderTimeout < queryTimeout, and queryTimeout and sendTimeout < the
// workers' stop timeout; a test holds them to it.
const (
	// ProviderTimeout is how long one call to a provider may take.
	ProviderTimeout = 5 * time.Second
	queryTimeout    = 8 * time.Second
	// sendTimeout lets a send that leaves at the last moment end, and be booked. A
	// worker that dies in it is noticed by its heartbeat.
	sendTimeout = 11 * time.Second
	// TaskTimeout is how long a worker may take over one workflow task, and so how
	// long a run waits for a worker that died in the middle of it. The SDK renews
	// a task of which four fifths have passed: payNowTimeout stays below.
	TaskTimeout   = 5 * time.Second
	payNowTimeout = 3500 * time.Millisecond // of everything that is done within a workflow task
	// storeTimeout is also how long a step of a worker that died is waited for;
	// steps on our own stores take milliseconds and may be repeated at any time.
	storeTimeout = 5 * time.Second
	bulkTimeout  = 10 * time.Minute
	// heartbeat: long steps beat every second, whatever they wait for.
	heartbeat = 5 * time.Second
	// WorkerStopTimeout lets running payment calls end before a worker goes.
	WorkerStopTimeout = 12 * time.Second
)
