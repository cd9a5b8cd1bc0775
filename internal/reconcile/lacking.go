package reconcile

import (
	"context"

	"hongbao/internal/packet"
)

// Lacking counts the users whose claims a pool lacks. users have a claim in MySQL, with or without a
// share, and were read before the pool: when the pool is read, it has everything that MySQL had. With
// share conflicts the counts of claims say nothing. Errors: those of read.
func Lacking(ctx context.Context, read Reader, id string, users []string) (int, error) {
	lacks := make(map[string]bool, len(users))
	for _, user := range users {
		lacks[user] = true
	}
	err := read(ctx, id, func(some []packet.Claim) error {
		for _, c := range some {
			delete(lacks, c.UserID)
		}
		return nil
	})
	return len(lacks), err
}
