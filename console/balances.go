package console

import (
	"net/http"
	"slices"
	"time"

	"hongbao/client"
	"hongbao/wire"
)

// balancesPage lists what each app has paid in for packets of its own.
type balancesPage struct{ Items []wire.AppBalance }

func (v *visit) listBalances() error {
	found, err := v.staff.Balances(v.r.Context(), time.Time{})
	if err != nil {
		return err
	}
	v.show("balances", http.StatusOK, balancesPage{found.Items})
	return nil
}

// balancePage is the balance of one app with its history.
type balancePage struct {
	Balance wire.AppBalance
	Entries *wire.List[wire.BalanceEntry]
	Next    string
}

// Movements are what two persons of finance can do to the balance.
func (balancePage) Movements() []string { return []string{"credit", "debit"} }

func (v *visit) showBalance() error {
	app := v.r.PathValue("id")
	found, err := v.staff.Balances(v.r.Context(), time.Time{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(found.Items, func(b wire.AppBalance) bool { return b.App == app })
	if i < 0 {
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	body := balancePage{Balance: found.Items[i]}
	body.Entries, err = v.staff.ListBalanceMovements(v.r.Context(), client.AppBalanceFilter{App: app},
		client.Page{Limit: shownDays, Cursor: v.query.Get("cursor")})
	if err != nil {
		return err
	}
	if body.Entries.NextCursor != nil {
		body.Next = v.next(*body.Entries.NextCursor)
	}
	v.show("balance", http.StatusOK, body)
	return nil
}

// exportBalance returns the API's CSV of the history of an app's balance.
func (v *visit) exportBalance() error {
	return v.export("balance-movements", map[string]string{"app": v.r.PathValue("id")})
}

// moveBalance asks for a credit or debit, which a second person approves.
func (v *visit) moveBalance() error {
	app, form := v.r.PathValue("id"), v.r.PostForm
	move := v.staff.CreditBalance
	switch v.r.PathValue("action") {
	case "credit":
	case "debit":
		move = v.staff.DebitBalance
	default:
		return &client.Problem{Problem: wire.Problem{Status: http.StatusNotFound, Code: wire.CodeNotFound}}
	}
	amount, ok := parseYuan(form.Get("amount"))
	if !ok {
		return v.showFormAgain(&client.Problem{Problem: wire.Problem{Status: http.StatusUnprocessableEntity, Code: wire.CodeInvalidRequest,
			Errors: []wire.FieldError{{Field: "amount", Code: "invalid_format"}}}})
	}
	made, err := move(v.r.Context(), app, wire.MoveBalance{Amount: amount, Reason: v.reason(), Evidence: form.Get("evidence"),
		Reference: form.Get("reference")}, v.key())
	if err != nil {
		return v.showFormAgain(err)
	}
	return v.redirectDone("/balances/"+app, made.Decision.Kind+"_"+made.Decision.Status)
}
