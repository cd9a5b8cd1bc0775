package console

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"

	"hongbao/client"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/wire"
)

// packetsPage is a list of packets.
type packetsPage struct {
	Status  wire.PacketStatus
	Sender  string
	Overdue bool // expired and not closed
	Items   []wire.StaffPacket
	Total   *total // nil if unavailable
	Next    string
}

// packetStatuses are the statuses of the tabs; "" is all of them.
var packetStatuses = []wire.PacketStatus{"", wire.PacketFunding, wire.PacketScheduled, wire.PacketOpen, wire.PacketSoldOut,
	wire.PacketClosing,
	wire.PacketClosed, wire.PacketRejected}

// Tabs are the statuses of the tabs.
func (packetsPage) Tabs() []wire.PacketStatus { return packetStatuses }

func readPacketsPage(q url.Values) packetsPage {
	return packetsPage{Status: wire.PacketStatus(q.Get("status")), Sender: q.Get("sender"), Overdue: q.Get("overdue") == "true"}
}

// Query is the filter of the list, as a query of the console.
func (p packetsPage) Query() string {
	return queryOf(map[string]string{"status": string(p.Status), "sender": p.Sender, "overdue": trueOrEmpty(p.Overdue)}).Encode()
}

// exportPackets returns the API's CSV of the same filter.
func (v *visit) exportPackets() error {
	p := readPacketsPage(v.query)
	return v.export("packets", map[string]string{"status": string(p.Status), "sender_id": p.Sender, "overdue": trueOrEmpty(p.Overdue)})
}

func (v *visit) listPackets() error {
	body := readPacketsPage(v.query)
	filter := wire.StaffPacketFilter{Status: body.Status, SenderID: body.Sender, Overdue: body.Overdue}
	found, err := v.staff.ListPackets(v.r.Context(), filter, client.Page{Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = found.Items
	body.Total = v.sumOf(v.staff.SumPackets(v.r.Context(), filter))
	if found.NextCursor != nil {
		body.Next = v.next(*found.NextCursor)
	}
	v.show("packets", http.StatusOK, body)
	return nil
}

// packetPage is the data of a packet's page. Parts from Redis or the provider may be missing, so
// that the page works during an outage of either.
type packetPage struct {
	Packet *wire.StaffPacketDetail
	Proof  *wire.Proof            // nil if unavailable
	Claims *wire.List[wire.Claim] // nil if unavailable
	Next   string
	Fair   fairness
	Holds  []hold // active ones, of the packet or its charge
}

// Charge is the id of the packet's charge.
func (p packetPage) Charge() string { return chargeID(p.Packet.ID) }

// Holdable reports whether a hold of staff would stop something.
func (p packetPage) Holdable() bool { return !heldByStaff(p.Holds, p.Packet.ID) }

// Recallable reports whether the packet can be recalled.
func (p packetPage) Recallable() bool {
	return p.Packet.Status == wire.PacketOpen || p.Packet.Status == wire.PacketScheduled
}

// fairness is the result of recomputing the shares.
type fairness struct {
	Verdict string // open: seed not published yet; fair; unfair; large: not recomputed here; unread: claims unavailable
	Wrong   int    // claims of this page that differ
}

// maxRecomputed is the largest share count that a page recomputes.
const maxRecomputed = 100_000

// recallPacket ends a packet and refunds the unclaimed remainder.
func (v *visit) recallPacket() error {
	id := v.r.PathValue("id")
	if _, err := v.staff.RecallPacket(v.r.Context(), id, wire.Reason{Reason: v.reason()}, v.key()); err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/packets/"+id, "recall")
}

func (v *visit) showPacket() error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	found, err := v.staff.Packet(ctx, id)
	if err != nil {
		return err
	}
	body := packetPage{Packet: found, Fair: fairness{Verdict: "unread"}}
	if body.Holds, err = v.activeHolds(found.ID, chargeID(found.ID)); err != nil {
		return err
	}
	if body.Proof, err = v.staff.Proof(ctx, id); err != nil && !unavailable(err) {
		return err
	}
	if body.Claims, err = v.staff.PacketGrabs(ctx, id, client.Page{Limit: maxClaims, Cursor: v.query.Get("cursor")}); err != nil &&
		!unavailable(err) {
		return err
	}
	if body.Claims != nil {
		if next := body.Claims.NextCursor; next != nil {
			body.Next = v.next(*next)
		}
		body.Fair = verifyShares(found, body.Claims.Items)
	}
	v.show("packet", http.StatusOK, body)
	return nil
}

// unavailable reports whether err is a 503 of the API: a part that it needs did not respond in time.
func unavailable(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Status == http.StatusServiceUnavailable
}

// maxClaims is how many claims the page shows.
const maxClaims = 100

// verifyShares recomputes a closed packet's shares from its seed and compares them with the
// commitment and with the claims.
func verifyShares(p *wire.StaffPacketDetail, claims []wire.Claim) fairness {
	if p.Fairness.Seed == nil {
		return fairness{Verdict: "open"}
	}
	if p.ShareCount > maxRecomputed {
		return fairness{Verdict: "large"}
	}
	var seed [32]byte
	if n, err := hex.Decode(seed[:], []byte(*p.Fairness.Seed)); err != nil || n != len(seed) ||
		packet.Commitment(seed) != p.Fairness.Commitment {
		return fairness{Verdict: "unfair"}
	}
	params := packet.SplitParams{PacketID: p.ID, Mode: packet.SplitMode(p.Split), Total: p.TotalAmount, Count: p.ShareCount, Min: p.MinShare,
		Max: valueOr(p.MaxShare, money.Fen(0))}
	shares, err := packet.Split(seed, params)
	if err != nil {
		return fairness{Verdict: "unfair"}
	}
	out := fairness{Verdict: "fair"}
	for _, c := range claims {
		if c.ShareIndex < 0 || c.ShareIndex >= len(shares) || shares[c.ShareIndex] != c.Amount {
			out.Verdict, out.Wrong = "unfair", out.Wrong+1
		}
	}
	return out
}
