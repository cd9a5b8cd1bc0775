package packet

import "time"

// RecordedClaim is a claim that MySQL has: a share or, with Conflict, an acknowledged claim without one.
// A user may have one of each.
type RecordedClaim struct {
	UserID     string
	ShareIndex int
	Conflict   bool
}

// Recorded is what MySQL has about some users' claims of a packet.
type Recorded struct {
	Claims []RecordedClaim
	// Taken holds the claimed shares among those asked about. It is read if one of the users has a
	// share conflict.
	Taken []int
}

// LivePacket is a packet that was staged and is not retired.
type LivePacket struct {
	ID        string
	CreatedAt time.Time
}
