package payout

// LateCharge reports whether a charge went through, by what was settled now, that may have
// cost its packet: it had been called failed, or a recovery has put it back to unknown since
// (rule R13). If the packet was rejected, its sender was told that nothing is taken, and all
// of it goes back to him (rule R2); one that is still funding goes on with it.
func LateCharge(was Status, now Payment) bool {
	return now.Kind == KindCharge && now.Status == StatusPaid && (was == StatusFailed || was == StatusUnknown)
}
