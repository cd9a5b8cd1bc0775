package payout

import "testing"

// TestRecipientAction: a failed or returned payout always says what the recipient can do, a moving
// or ended one never, and only failures of the catalogue have an action of their own.
func TestRecipientAction(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range FailureCodes {
		listed[f.Code] = true
	}
	for code := range recipientActions {
		if !listed[code] {
			t.Errorf("%q is not in FailureCodes", code)
		}
	}
	for _, s := range Statuses {
		for code, want := range map[string]RecipientAction{
			"account_frozen": RecipientFixAccount, "confirmation_expired": RecipientConfirm, "declined": RecipientWait, "brand_new": RecipientWait,
		} {
			switch s {
			case StatusFailed, StatusReturned:
			case StatusAwaitingRecipient:
				want = RecipientConfirm
			default:
				want = ""
			}
			if got := RecipientActionOf(s, code); got != want {
				t.Errorf("%s, %s: %q, want %q", s, code, got, want)
			}
		}
	}
}
