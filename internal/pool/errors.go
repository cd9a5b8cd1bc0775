package pool

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

// Errors of this package; test for them with errors.Is.
var (
	// ErrUnavailable: Redis is away, is starting, or cannot take (durable) writes
	// now. A call that got it may have happened; it may be repeated.
	ErrUnavailable = fmt.Errorf("redis %w", packet.ErrUnavailable)
	// ErrOverloaded: too many grabs wait in the lane already; nothing was taken. It is an ErrUnavailable.
	ErrOverloaded = fmt.Errorf("too many grabs waiting: %w", ErrUnavailable)
	// ErrInconsistent: counters and shares of a packet disagree, as they do while it is
	// withheld (Restore); nothing was taken. It is an ErrUnavailable.
	ErrInconsistent = fmt.Errorf("counters and shares of the packet disagree, or it is withheld: %w", ErrUnavailable)
	// ErrReplicas: fewer replicas than configured have what was written; the master has
	// it. It is an ErrUnavailable: the same call again is answered once they have it.
	ErrReplicas = fmt.Errorf("too few replicas have it: %w", ErrUnavailable)
	// ErrFenced: what Redis holds of the lane lacks something that was told before, or may
	// (rule R9); nothing was changed, and is not until the lane was rebuilt. It is an ErrUnavailable.
	ErrFenced = fmt.Errorf("the gate of the lane is shut: %w", ErrUnavailable)
	// ErrEpoch: the lane is in another epoch than the one whose gate should be moved.
	ErrEpoch = errors.New("lane is in another epoch")
	// ErrVolatile: Redis is set up so that it may lose acknowledged writes. It comes with ErrUnavailable.
	ErrVolatile = errors.New("redis may lose acknowledged writes")
	// ErrRewrite: a server that was a replica, or whose append-only file was just switched on,
	// appends to a file that its next start does not read, until a rewrite has ended. It is an
	// ErrUnavailable.
	ErrRewrite = fmt.Errorf("redis has to end a rewrite before its append-only file counts: %w", ErrUnavailable)
	// ErrLanes: this Redis is in use with another number of lanes.
	ErrLanes = errors.New("number of lanes differs from the one in use")
	// ErrAccess: Redis is there, and this process is not let in, or does not trust it: an
	// ErrAuth, ErrRights, ErrTLS or ErrProtected. It comes with ErrUnavailable, but does not pass before
	// somebody corrects settings, here or there.
	ErrAccess = errors.New("no access to redis")
	// ErrAuth: the user or the password is wrong, or one is missing.
	ErrAuth = fmt.Errorf("%w: user or password is wrong or missing", ErrAccess)
	// ErrSentinelAuth: it is the sentinels that say so. It is an ErrAuth.
	ErrSentinelAuth = fmt.Errorf("the sentinels: %w", ErrAuth)
	// ErrRights: the user may not do what we need; a *RightsError names it when it was looked for.
	ErrRights = fmt.Errorf("%w: rights are missing", ErrAccess)
	// ErrTLS: the two sides do not agree about TLS, or the certificate is not to be trusted.
	ErrTLS = fmt.Errorf("%w: TLS", ErrAccess)
	// ErrProtected: Redis is in protected mode, without a password, and talks to its own machine only.
	ErrProtected = fmt.Errorf("%w: protected mode", ErrAccess)
	// ErrClusterNode: Redis is a node of a Cluster, but the mode is single.
	ErrClusterNode = errors.New("redis is a node of a cluster: set the mode to cluster")

	// ErrNotFound: what was asked for is not in Redis (MySQL may know it).
	ErrNotFound = fmt.Errorf("redis: %w", packet.ErrNotFound)
	// ErrPoolGone: the pool that should be changed is not in Redis. It is an ErrNotFound.
	ErrGone = fmt.Errorf("%w: %w", packet.ErrPoolGone, ErrNotFound)
	// ErrExpiresInPast: expires_at would not lie ahead. Nothing was staged.
	ErrPast = fmt.Errorf("packet: %w", packet.ErrExpiresInPast)
	// ErrOpensTooFar: opens_at lies too far ahead. Nothing was staged.
	ErrTooFar = fmt.Errorf("%w: more than %v", packet.ErrOpensTooFar, packet.MaxOpensAhead)
	// ErrNotOpenYet: the packet is still being funded.
	ErrNotOpenYet = fmt.Errorf("packet: %w", packet.ErrNotOpenYet)
	// ErrState: the pool is in a state that the call does not lead on from; a *StateError names it.
	ErrState = errors.New("pool is in another state")
	// ErrMalformed: Redis holds something that this program did not write.
	ErrMalformed = errors.New("malformed record in redis")

	// ErrLeaseLost: the lease of the worker slot ran out; somebody else may hold it.
	ErrLeaseLost = errors.New("worker slot lost")
	// ErrNoSlot: every worker slot is held.
	ErrNoSlot = errors.New("no free worker slot")
)

// StateError is an ErrState with the state that was met.
type StateError struct{ State packet.PoolState }

// Error implements error.
func (e *StateError) Error() string { return fmt.Sprintf("pool is %s", e.State) }

// Is makes it an ErrState.
func (e *StateError) Is(target error) bool { return target == ErrState }

// redisError adds what was tried to an error of the client, and ErrUnavailable
// to all that pass by themselves. It is the only place that tells them apart.
// What is left are mistakes of ours, such as an error in a script.
func redisError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFenced):
		return fmt.Errorf("%s: %w", op, err)
	case redis.HasErrorPrefix(err, fencedCode):
		return fmt.Errorf("%s: %w", op, ErrFenced)
	case accessKind(err) != nil:
		return fmt.Errorf("%s: %w: %w: %w", op, ErrUnavailable, accessKind(err), err)
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%s: %w", op, err)
	case errors.Is(err, ErrAccess), !isReply(err), isTransient(err):
		return fmt.Errorf("%s: %w: %w", op, ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// isReply reports whether Redis itself answered with this error. All others are
// about the way to Redis: dialing, timeouts, closed connections, contexts.
func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// accessKind returns the ErrAccess that an error of the client or of Redis is; nil: none,
// or it is one already.
func accessKind(err error) error {
	switch {
	case errors.Is(err, ErrAccess):
		return nil
	case redis.IsAuthError(err): // NOAUTH, WRONGPASS
		return ErrAuth
	case redis.IsPermissionError(err): // NOPERM
		return ErrRights
	case isAlert(err):
		return ErrTLS
	case redis.HasErrorPrefix(err, protectedCode):
		return ErrProtected
	}
	return nil
}

// protectedCode begins what a server in protected mode says to each connection before it ends it.
const protectedCode = "DENIED"

// transientCodes begin the error replies of a Redis, or of what stands in front of one, that
// cannot do something now: a client that cannot tell them apart tries again. The client
// library has functions for some; a list shows what is in it. With a blank: there are longer
// codes that begin so. The word ERR in front of a text is left out.
var transientCodes = []string{
	"LOADING", "BUSY ", "READONLY", "MISCONF", "NOREPLICAS", "NOSCRIPT", "OOM", "EXECABORT", "UNBLOCKED",
	"MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED ", "ASK ", "REDIRECT", "INPROG", "NOMASTERLINK", "IOERR",
	"max number of clients",
	"Script killed by user", // by SCRIPT KILL, before it wrote
}

// isTransient reports whether an error reply says that Redis cannot do it now.
// MOVED and ASK only come out of the client when it may not repeat a call.
func isTransient(err error) bool {
	for _, code := range transientCodes {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}
