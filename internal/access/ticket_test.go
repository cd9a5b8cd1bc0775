package access

import "testing"

// TestTicketKeyIDs: the id follows from the public key and never changes.
func TestTicketKeyIDs(t *testing.T) {
	if id := TicketKeyID(make([]byte, 32)); !ValidKeyID(id) || id != "mzuhvlpymk6x" {
		t.Error(id)
	}
}
