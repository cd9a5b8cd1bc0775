package pool

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// BooksNumber returns the copy of the number of MySQL's books (rule R13): the
// highest that a majority of the places knows of, 0 when none was ever kept, or
// when Redis has lost it. A number that only a minority has was in MySQL too, so
// it counts.
//
// Errors: ErrUnavailable, ErrMalformed.
func (p *Pool) BooksNumber(ctx context.Context) (int64, error) {
	var highest maximum
	_, _, err := p.askCopies(ctx, keyBooks, func(ctx context.Context, key string) (bool, error) {
		n, err := p.rdb.Get(ctx, key).Int64()
		if errors.Is(err, redis.Nil) {
			return false, nil
		}
		highest.note(n)
		return true, redisError("number of the books", err)
	})
	return highest.n, err
}

// RaiseBooksNumber keeps a number of MySQL's books, unless a higher one is kept.
//
// Errors: ErrUnavailable when no majority of the places has it then.
func (p *Pool) RaiseBooksNumber(ctx context.Context, number int64) error {
	_, _, err := p.askCopies(ctx, keyBooks, func(ctx context.Context, key string) (bool, error) {
		n, err := raiseScript.Run(ctx, p.rdb, []string{key}, number).Int64()
		return n >= number, redisError("raise the number of the books", err)
	})
	return err
}

// maximum is the highest of the numbers that several goroutines note.
type maximum struct {
	mu sync.Mutex
	n  int64
}

func (m *maximum) note(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n = max(m.n, n)
}
