package packet

// HandOff (交接记录) is one decoded entry of a lane's stream: what Redis leaves
// for the worker. Exactly one of the members is set.
type HandOff struct {
	// EntryID is the stream entry id, for the acknowledgement.
	EntryID string
	// Created is set for a packet that was staged: its workflow has to be started.
	Created *Packet
	// Claims is set for grabs that were won, in the order they were won.
	Claims []Claim
	// App is the app of the packet that Claims are of; "" when Redis did not tell.
	App string
	// SoldOut names the packets whose last share is among Claims.
	SoldOut []string
	// Recalled is the id of a packet that its sender recalled.
	Recalled string
}
