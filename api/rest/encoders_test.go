package rest

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/wire"
)

// reflected is what encoding/json makes of a value. It escapes two line
// separators that JSON does not ask to be escaped; nothing else may differ.
func reflected(t interface{ Fatal(...any) }, v any) string {
	raw, err := Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(string(raw))
}

// TestEncoders: what is written by hand is what encoding/json writes.
func TestEncoders(t *testing.T) {
	// No backslashes: before u2028 they would be taken for the escape.
	text := rapid.StringMatching(`[^\\]{0,20}`)
	t.Run("claim", rapid.MakeCheck(func(t *rapid.T) {
		c := wire.Claim{
			PacketID: rapid.StringMatching(`[0-9a-v]{20}`).Draw(t, "packet"), UserID: text.Draw(t, "user"),
			ShareIndex: rapid.IntRange(0, packet.MaxShares-1).Draw(t, "share"),
			Amount:     money.Fen(rapid.Int64Range(1, int64(money.Max)).Draw(t, "amount")), Currency: packet.CurrencyCNY,
			ClaimedAt: wire.At(time.UnixMilli(rapid.Int64Range(0, MaxMs).Draw(t, "at")).In(time.FixedZone("", 3600))),
			Nickname:  rapid.Ptr(text, true).Draw(t, "nickname"), AvatarURL: rapid.Ptr(text, true).Draw(t, "avatar"),
			Replayed: rapid.Bool().Draw(t, "replayed"), BestLuck: rapid.Bool().Draw(t, "luck"),
		}
		c.Payout.ID = rapid.StringMatching(`[ph][0-9a-v]{24}`).Draw(t, "payout")
		c.Payout.Status = wire.PayoutStatus(rapid.SampledFrom(payout.Statuses).Draw(t, "status"))
		c.RecipientAction = rapid.Ptr(rapid.Map(rapid.SampledFrom([]string{"confirm", "fix_account"}), func(s string) wire.RecipientAction {
			return wire.RecipientAction(s)
		}), true).Draw(t, "action")
		if got, want := string(EncodeClaim(&c)), reflected(t, c); got != want {
			t.Fatalf("\n%s, want\n%s", got, want)
		}
	}))
	t.Run("problem", rapid.MakeCheck(func(t *rapid.T) {
		e := Refuse(rapid.SampledFrom(catalogue).Draw(t, "code").code)
		if rapid.Bool().Draw(t, "rich") {
			e.Fields, e.PacketID, e.OpensAt = []wire.FieldError{{Field: "a", Code: "b", Message: "c"}}, "p", time.UnixMilli(1)
		}
		instance, id := text.Draw(t, "instance"), text.Draw(t, "id")
		want := e.Problem(instance, id)
		status, got := e.Render(instance, id)
		if text := strings.NewReplacer("\\u2028", "\u2028", "\\u2029", "\u2029").Replace(string(got)); status != want.Status ||
			text != reflected(t, want) {
			t.Fatalf("\n%d %s, want\n%s", status, got, reflected(t, want))
		}
	}))
	if raw := EncodeClaim(&wire.Claim{UserID: "\\ \" \x00 \xff \u2028 <&>"}); !jsontext.Value(raw).IsValid() {
		t.Errorf("%s", raw)
	}
}
