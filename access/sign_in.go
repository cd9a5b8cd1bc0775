package access

import "time"

// EndedSignIn is a sign-in to the console that somebody ended before its time.
type EndedSignIn struct {
	ID    []byte    `json:"id"`     // a hash of what its cookie holds: nobody can make one of it
	KeyID string    `json:"key_id"` // with which he had signed in
	Until time.Time `json:"until"`  // its cookie ends by itself before
}
