package workflows

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"hongbao/internal/campaign"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// TestSummariesFit: a server that holds summaries to its limit takes those of the longest
// names there can be, whatever characters they are of.
func TestSummariesFit(t *testing.T) {
	t.Parallel()
	const packetID = "00000000000000000000"
	for _, char := range []string{"x", "<", "&", `"`, `\`, "红", "🧧", "\u2028", "\x7f", "\xff", "a\u0301"} {
		id, name := strings.Repeat(char, 64/len(char)+1), strings.Repeat(char, campaign.MaxName)
		p := packet.Packet{ID: packetID, SenderID: id, Currency: packet.CurrencyCNY, TotalAmount: 1 << 53, ShareCount: 1_000_000}
		for what, text := range map[string]string{
			"packet": PacketSummary(p), "campaign": CampaignSummary(campaign.Campaign{Name: name, Template: campaign.Template{Packet: p}}),
			"payout":    PayoutSummary(packet.Claim{PacketID: packetID, UserID: id, Amount: 1 << 53, ShareIndex: 999_999}),
			"payment":   PaymentSummary(payout.Payment{Kind: payout.KindRefund, PacketID: packetID, Account: id, Amount: 1 << 53}),
			"day":       ReconcileSummary(ReconcileInput{Provider: name, Day: "2026-01-01"}),
			"daily":     DailyReconcileSummary(name),
			"step":      summary("pay " + id + name),
			"endless":   summary(strings.Repeat(char, 5000)),
			"unaligned": summary("x" + strings.Repeat(char, 5000)),
		} {
			payload, err := converter.GetDefaultDataConverter().ToPayload(text)
			if err != nil {
				t.Fatal(err)
			}
			if size := proto.Size(payload); size > SummaryLimit {
				t.Errorf("%s of %q: a payload of %d bytes: %q", what, char, size, text)
			}
			if utf8.ValidString(char) && !utf8.ValidString(text) {
				t.Errorf("%s of %q is cut within a character: %q", what, char, text)
			}
		}
	}
	for _, text := range []string{"", "红包 1.00", strings.Repeat("x", SummaryLimit-summaryHeader-2)} {
		if got := summary(text); got != text {
			t.Errorf("%q has become %q", text, got)
		}
	}
	if got := summary(strings.Repeat("x", SummaryLimit)); !strings.HasSuffix(got, "x…") || len(got) < SummaryLimit-summaryHeader-5 {
		t.Errorf("clipped to %d bytes: %q", len(got), got)
	}
}

// TestEverySummaryIsClipped: no summary is given to Temporal that is neither a constant nor
// was clipped.
func TestEverySummaryIsClipped(t *testing.T) {
	t.Parallel()
	found := 0
	for _, dir := range []string{".", "../worker", "../activities", "../cmd/hongbao"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				field, ok := n.(*ast.KeyValueExpr)
				if !ok {
					return true
				}
				if key, ok := field.Key.(*ast.Ident); !ok || key.Name != "StaticSummary" && key.Name != "Summary" {
					return true
				}
				found++
				if value := string(text[field.Value.Pos()-1 : field.Value.End()-1]); !clippedText(field.Value, value) {
					t.Errorf("%s: summary %s is not clipped", name, value)
				}
				return true
			})
		}
	}
	if found < 15 {
		t.Errorf("only %d summaries found", found)
	}
}

// clippedText: a literal, a call of summary, or of one of the functions that call it.
func clippedText(value ast.Expr, text string) bool {
	if _, literal := value.(*ast.BasicLit); literal {
		return true
	}
	call, _, _ := strings.Cut(text, "(")
	return call == "summary" || strings.HasPrefix(call, "workflows.") && strings.HasSuffix(call, "Summary")
}
