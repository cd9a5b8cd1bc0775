package console

import (
	"encoding/hex"
	"net/http"

	"hongbao/client"
	"hongbao/money"
	"hongbao/packet"
)

// packetsPage is a list of packets.
type packetsPage struct {
	Status  client.Status
	Sender  string
	Overdue bool // those that expired and are not closed
	Items   []client.StaffPacket
	Next    string
}

// packetStatuses are the tabs of the list of packets; "" is all of them.
var packetStatuses = []client.Status{"", client.StatusFunding, client.StatusScheduled, client.StatusOpen, client.StatusSoldOut, client.StatusClosing,
	client.StatusClosed, client.StatusRejected}

// Tabs are the statuses to choose from.
func (packetsPage) Tabs() []client.Status { return packetStatuses }

func (v *visit) listPackets() error {
	q := v.r.URL.Query()
	body := packetsPage{Status: client.Status(q.Get("status")), Sender: q.Get("sender"), Overdue: q.Get("overdue") == "true"}
	found, err := v.staff.ListPackets(v.r.Context(), client.StaffPacketFilter{Status: body.Status, SenderID: body.Sender, Overdue: body.Overdue}, client.Page{Cursor: q.Get("cursor")})
	if err != nil {
		return err
	}
	body.Items = found.Items
	if found.NextCursor != nil {
		more := q
		more.Set("cursor", *found.NextCursor)
		body.Next = more.Encode()
	}
	v.show("packets", http.StatusOK, body)
	return nil
}

// packetPage is everything about one packet.
type packetPage struct {
	Packet *client.StaffPacketDetail
	Proof  *client.Proof
	Claims []client.Claim
	Next   string
	Fair   fairness
}

// fairness is what recomputing the shares has shown.
type fairness struct {
	Verdict string // open: the seed is not told yet; fair; unfair; large: not recomputed here
	Wrong   int    // claims of this page that differ
}

// maxRecomputed is the largest packet whose shares are recomputed for a page.
const maxRecomputed = 100_000

func (v *visit) showPacket() error {
	ctx, id := v.r.Context(), v.r.PathValue("id")
	found, err := v.staff.Packet(ctx, id)
	if err != nil {
		return err
	}
	body := packetPage{Packet: found}
	if body.Proof, err = v.staff.Proof(ctx, id); err != nil {
		return err
	}
	claims, err := v.staff.PacketGrabs(ctx, id, client.Page{Limit: maxClaims, Cursor: v.r.URL.Query().Get("cursor")})
	if err != nil {
		return err
	}
	body.Claims = claims.Items
	if claims.NextCursor != nil {
		body.Next = nextQuery("part", "claims", *claims.NextCursor)
	}
	body.Fair = judge(found, claims.Items)
	v.show("packet", http.StatusOK, body)
	return nil
}

// maxClaims is how many claims a page shows.
const maxClaims = 100

// judge recomputes a closed packet's shares from its seed and compares them with
// what was committed to and with what was given.
func judge(p *client.StaffPacketDetail, claims []client.Claim) fairness {
	if p.Fairness.Seed == nil {
		return fairness{Verdict: "open"}
	}
	if p.ShareCount > maxRecomputed {
		return fairness{Verdict: "large"}
	}
	var seed [32]byte
	if n, err := hex.Decode(seed[:], []byte(*p.Fairness.Seed)); err != nil || n != len(seed) || packet.Commitment(seed) != p.Fairness.Commitment {
		return fairness{Verdict: "unfair"}
	}
	params := packet.SplitParams{PacketID: p.ID, Mode: packet.SplitMode(p.Split), Total: p.TotalAmount, Count: p.ShareCount, Min: p.MinShare, Max: valueOr(p.MaxShare, money.Fen(0))}
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
