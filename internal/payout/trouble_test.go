package payout

import "testing"

func TestTroubleOf(t *testing.T) {
	for _, tc := range []struct {
		o    Observation
		want Trouble
		says bool
	}{
		{Observation{Kind: ObsSucceeded}, TroubleNone, true},
		{Observation{Kind: ObsPending}, TroubleNone, true},
		{Observation{Kind: ObsNeedsRecipient}, TroubleNone, true},
		{Observation{Kind: ObsReturned}, TroubleNone, true},
		{Observation{Kind: ObsDeclined, Code: "account_frozen"}, TroubleNone, true},
		{Observation{Kind: ObsRetryAfter, Code: CodeLowBalance}, TroubleLowBalance, true},
		{Observation{Kind: ObsRetryAfter, Code: CodeRateLimited}, TroubleNone, false},
		{Observation{Kind: ObsRetryAfter, Code: "unauthenticated"}, TroubleOutage, true},
		{Observation{Kind: ObsNoAnswer, Code: "http_500"}, TroubleOutage, true},
		{Observation{Kind: ObsNoAnswer, Code: "timeout"}, TroubleOutage, true},
		{Observation{Kind: ObsNotSent, Code: "connection"}, TroubleOutage, true},
	} {
		if got, says := TroubleOf(tc.o); got != tc.want || says != tc.says {
			t.Errorf("%s %s: %q %v, want %q %v", tc.o.Kind, tc.o.Code, got, says, tc.want, tc.says)
		}
	}
}
