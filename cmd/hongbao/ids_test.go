package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hongbao/internal/access"
)

// formOf maps what the usage of a command calls its argument to the form of the id. nil: the argument is no id.
var formOf = map[string]*idForm{
	"<packet id>": &packetID, "<campaign id>": &campaignID, "<payout id>": &payoutID, "<refund id>": &refundID, "<charge id>": &chargeID,
	"<approval id>": &approvalID, "<reconciliation id>": &reconciliationID, "<break id>": &breakID, "<hold id>": &holdID,
	"<id>": &keyID, "<kid>": &ticketKeyID,
	"<url>": nil, "<provider>": nil, "<scope>": nil, "<day>": nil, "<packet.json>": nil, "<app>": nil,
}

// flagForms maps the flags that take an id of the platform to its form.
var flagForms = map[string]*idForm{
	"packet": &packetID, "payment": &paymentID, "reconciliation": &reconciliationID, "order-no": &orderNumber, "app": &appID,
}

// TestImpossibleIDs: every command refuses an id of an impossible form, names the form and sends nothing.
func TestImpossibleIDs(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	t.Cleanup(server.Close)
	env := []string{"HONGBAO_URL=" + server.URL, "HONGBAO_STAFF_URL=" + server.URL}
	for _, role := range []string{"APP", "FINANCE", "OPS", "AUDITOR", "ADMIN"} {
		env = append(env, "HONGBAO_"+role+"_KEY=k")
	}
	refused := func(want string, line ...string) {
		if code, out, errs := runLine(t, env, line...); code != exitUsage || out != "" || errs != "hongbao: "+want+"\n" {
			t.Errorf("%q: exit code %d\n%s%s\nwant %s", line, code, out, errs, want)
		}
	}
	arguments, flags := 0, 0
	everyCommand(newRoot(nil), func(path []string, cmd *cobra.Command) {
		if form := argumentForm(t, cmd); form != nil {
			arguments++
			given := `"x!"`
			if form.secret {
				given = "the argument"
			}
			refused(given+" is not "+form.name+": write "+form.write, slices.Concat(path, []string{"x!"})...)
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if form := flagForms[flag.Name]; form != nil && !isSetting(cmd, flag.Name) {
				flags++
				refused("parse --"+flag.Name+` "x!": not `+form.name+": write "+form.write, slices.Concat(path, []string{"--" + flag.Name, "x!"})...)
			}
		})
	})
	if requests.Load() > 0 || arguments < 30 || flags < 15 {
		t.Errorf("%d requests about %d arguments and %d flags", requests.Load(), arguments, flags)
	}
}

// argumentForm returns the form of the id that cmd takes as its first argument, or nil.
func argumentForm(t *testing.T, cmd *cobra.Command) *idForm {
	words := strings.SplitAfter(strings.TrimPrefix(cmd.Use, cmd.Name()+" "), ">")
	if !strings.HasPrefix(words[0], "<") || cmd.CommandPath() == "hongbao apps create" {
		return nil
	}
	form, known := formOf[words[0]]
	if !known {
		t.Errorf("%s takes %s, whose form is not known here", cmd.CommandPath(), words[0])
	}
	return form
}

// isSetting reports whether a flag is a setting, whose value readConfig checks.
func isSetting(cmd *cobra.Command, flag string) bool {
	return strings.Contains(cmd.Flag(flag).Usage, "env HONGBAO_")
}

// TestIDForms: each form accepts an id that the platform makes, and refuses those of the other kinds.
func TestIDForms(t *testing.T) {
	t.Parallel()
	token, key := access.NewToken(access.RoleOps)
	forms := map[string][]*idForm{
		"97h0uojo11oljc4bchnk":        {&packetID, &campaignID, &appID},
		"p3q5k9v0c1m7e2u8h4r6t0003":   {&payoutID, &paymentID, &anyPaymentID, &appID},
		"h3q5k9v0c1m7e2u8h4r6t0003":   {&payoutID, &paymentID, &anyPaymentID, &appID},
		"r3q5k9v0c1m7e2u8h4r6t0003":   {&refundID, &paymentID, &anyPaymentID, &appID},
		"p3q5k9v0c1m7e2u8h4r6t000301": {&orderNumber, &appID},
		"aKQ3X7M2P5R6T4V2W3Y7Z5B6CD":  {&approvalID},
		"sKQ3X7M2P5R6T4V2W3Y7Z5B6CD":  {&reconciliationID},
		"b4711":                       {&breakID, &appID},
		"h12":                         {&holdID, &appID},
		key:                           {&keyID, &ticketKeyID, &appID},
		token:                         {&keyID},
		"mall":                        {&appID},
		"b0":                          {&appID},
		"-":                           nil,
		"":                            nil,
	}
	all := []*idForm{&packetID, &campaignID, &payoutID, &refundID, &paymentID, &orderNumber, &approvalID, &reconciliationID, &breakID, &holdID,
		&anyPaymentID, &keyID, &ticketKeyID, &appID}
	for id, want := range forms {
		for _, form := range all {
			if err := form.check(id); (err == nil) != slices.Contains(want, form) {
				t.Errorf("%q as %s: %v", id, form.name, err)
			}
		}
	}
}

// TestMistypedTokenIsNotPrinted: the argument of a key command may be a token with a typing error.
func TestMistypedTokenIsNotPrinted(t *testing.T) {
	t.Parallel()
	token, _ := access.NewToken(access.RoleAdmin)
	token = token[:len(token)-1]
	for _, line := range []string{"keys revoke", "keys rotate", "keys approve", "keys direct revoke"} {
		code, out, errs := runLine(t, nil, append(strings.Fields(line), token)...)
		if code != exitUsage || out != "" || strings.Contains(errs, token[10:20]) || !strings.Contains(errs, keyID.write) {
			t.Errorf("%s: exit code %d, %s%s", line, code, out, errs)
		}
	}
}
