package reconcile

// Counts are the numbers of claims of a packet. They are compared before the claims, because they are
// cheap.
type Counts struct {
	First     First
	Pool      int // claims with a share in Redis
	Kept      int // claims without a share that Redis got since its rebuild
	Shares    int // claims with a share in MySQL
	Conflicts int // share conflicts in MySQL
}

// Verdict is what counts prove about the store that was read later.
type Verdict int

// The verdicts.
const (
	Unproven Verdict = iota // the claims must be compared
	Agree                   // it lacks nothing
	Lacks                   // it lacks claims
)

// Compare compares counts. With claims without a share they prove no agreement: the other store may or
// may not have them.
func (c Counts) Compare() Verdict {
	var lacks bool
	switch c.First {
	case ClaimsFirst:
		lacks = c.Shares+c.Conflicts < c.Pool
	case RecordedFirst:
		lacks = c.Pool < c.Shares
	default:
		return Unproven
	}
	switch {
	case lacks:
		return Lacks
	case c.Conflicts > 0 || c.Kept > 0:
		return Unproven
	}
	return Agree
}
