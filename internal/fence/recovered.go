package fence

// Found returns the row that a lane must get after a restore of MySQL. rebuild: staff want every lane
// rebuilt; lacks: the lane's pools lack something that MySQL has.
func Found(lane int, row LaneRow, found Epoch, rebuild, lacks bool) LaneRow {
	l := LaneRow{Lane: lane, Epoch: max(row.Epoch, found.Number), State: LaneOpen}
	if found.Number == l.Epoch {
		l.AckedSeq, l.AckedGrabs = found.Seq, found.Grabs
	}
	switch {
	case rebuild:
		l.Reason = LaneRequested
	case lacks:
		l.Reason = LanePoolBehind
	case found.Number > row.Epoch && !found.Open():
		l.Reason = LaneHalted // or its rebuilder died
	}
	if l.Reason != "" {
		l.State = LaneShut
	}
	return l
}

// Recovered merges a stored lane with the found one and reports whether the row changes.
func Recovered(have, found LaneRow) (LaneRow, bool) {
	shuts := found.State == LaneShut
	waits := have.State == LaneShut && (have.Reason == LaneMySQLOlder || have.Reason == LaneNew && shuts)
	switch {
	case found.Epoch > have.Epoch:
		return found, true
	case found.Epoch < have.Epoch, !waits && (!shuts || have.State != LaneOpen):
		return have, false
	}
	found.AckedSeq, found.AckedGrabs = max(found.AckedSeq, have.AckedSeq), max(found.AckedGrabs, have.AckedGrabs)
	return found, true
}
