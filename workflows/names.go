// Package workflows holds the durable workflows of a packet, a payout, a charge and a refund. A
// run has no authority: the row is the program counter (rule R3). A run reads it and continues
// from there, so any start may be repeated.
package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// Task queues. Drains have their own, so that long ones never delay payments.
const (
	TaskQueue      = "hongbao"
	DrainTaskQueue = "hongbao-drain"
)

// Registered names of the workflows.
const (
	PacketWorkflow = "Packet"
	PayoutWorkflow = "Payout"
	RefundWorkflow = "Refund"
	ChargeWorkflow = "Charge"
	CanaryWorkflow = "Canary"
)

// Signals.
const (
	// SignalClose gives a packet's workflow the reason to close (packet.CloseReason); the first
	// reason wins.
	SignalClose = "close"
	// SignalWake makes a run read its row again now.
	SignalWake = "wake"
)

// Search attributes. The first four are set at start, PayoutStatus and FailureCode only when a
// payment leaves the normal path, because each upsert has a cost. So is the provider of a payout,
// which its claim does not name.
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

// HonourID returns the workflow id of share conflict n of a packet, once staff have decided to
// honour it. The payout run of the same user may be waiting for staff.
func HonourID(packetID string, n int) string { return fmt.Sprintf("honour/%s/%d", packetID, n) }

// ChargeID returns the workflow id of queries about a charge whose packet's run has continued.
func ChargeID(packetID string) string { return "charge/" + packetID }

// PaymentWorkflowID returns the workflow id of a payment; "" for a charge, which its packet's
// workflow makes.
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

// PayoutInput starts a payout: with the claim (from the relay), or with only the payment id (a
// decision, a notification, a repair).
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

// PacketInput starts a packet's workflow.
type PacketInput struct {
	packet.Packet
	Console Console `json:"console,omitempty"`
}

// Console is the console's address in the browsers of staff, for links in the details of a run;
// "": no links. It is part of the input, because a run must not read configuration, which may
// differ at replay.
type Console = string

func amountOf(f money.Fen) string { return f.String() }

// Timeouts. ProviderTimeout < queryTimeout, and queryTimeout and sendTimeout < the workers' stop
// timeout; a test checks this.
const (
	// ProviderTimeout bounds one call to a provider.
	ProviderTimeout = 5 * time.Second
	queryTimeout    = 8 * time.Second
	// sendTimeout includes settling a send that leaves at the last moment. A worker that dies is
	// detected by its heartbeat.
	sendTimeout = 11 * time.Second
	// TaskTimeout bounds one workflow task, and so the time that a run waits for a worker that
	// died during it. The SDK renews a task after four fifths: payNowTimeout stays below.
	TaskTimeout   = 5 * time.Second
	payNowTimeout = 3500 * time.Millisecond // of all local activities of a workflow task
	// storeTimeout also bounds the wait for an activity of a dead worker. Activities on our own
	// stores take milliseconds and are repeatable.
	storeTimeout = 5 * time.Second
	bulkTimeout  = 10 * time.Minute
	// heartbeat: long activities send one every second.
	heartbeat = 5 * time.Second
	// WorkerStopTimeout lets running payment calls end before a worker stops.
	WorkerStopTimeout = 12 * time.Second
)
