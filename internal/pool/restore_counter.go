package pool

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// HeartbeatNumber returns the copy of MySQL's restore counter, books.number: the highest
// value of a majority of the copies; 0 when it was never stored or Redis lost it. A value
// that only a minority has counts too, because it was in MySQL.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) HeartbeatNumber(ctx context.Context) (int64, error) {
	var highest maximum
	_, _, err := p.askEachCopy(ctx, keyBooks, func(ctx context.Context, key string) (bool, error) {
		n, err := p.rdb.Get(ctx, key).Int64()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		highest.note(n)
		return true, redisError("read the restore counter", err)
	})
	return highest.n, err
}

// RaiseHeartbeatNumber stores a value of MySQL's restore counter, unless a higher one is stored.
//
// Errors: ErrUnavailable when no majority of the copies has it then.
func (p *Pool) RaiseHeartbeatNumber(ctx context.Context, number int64) error {
	_, _, err := p.askEachCopy(ctx, keyBooks, func(ctx context.Context, key string) (bool, error) {
		n, err := raiseScript.Run(ctx, p.rdb, []string{key}, number).Int64()
		return n >= number, redisError("raise the restore counter", err)
	})
	return err
}

// maximum is the highest number that several goroutines report.
type maximum struct {
	mu sync.Mutex
	n  int64
}

func (m *maximum) note(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n = max(m.n, n)
}
