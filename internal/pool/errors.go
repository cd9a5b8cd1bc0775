package pool

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"hongbao/internal/packet"
)

// Errors of this package; test for them with errors.Is.
var (
	// ErrUnavailable: Redis is unreachable, starting, or cannot take (durable) writes now.
	// The call may have taken effect; it may be repeated.
	ErrUnavailable = fmt.Errorf("redis %w", packet.ErrUnavailable)
	// ErrOverloaded: too many grabs wait in the lane; nothing was taken. It is an ErrUnavailable.
	ErrOverloaded = fmt.Errorf("too many grabs waiting: %w", ErrUnavailable)
	// ErrInconsistent: counters and shares of a packet disagree; nothing was taken. It is an ErrUnavailable.
	ErrInconsistent = fmt.Errorf("counters and shares of the packet disagree: %w", ErrUnavailable)
	// ErrReplicas: the master has the write, but fewer replicas have it than configured. It is an
	// ErrUnavailable: a repeated call succeeds once enough have it.
	ErrReplicas = fmt.Errorf("too few replicas have the write: %w", ErrUnavailable)
	// ErrFenced: the lane lacks acknowledged changes, or may. Nothing was changed; the lane
	// refuses calls until it is rebuilt. It is an ErrUnavailable.
	ErrFenced = fmt.Errorf("the fence of the lane is closed: %w", ErrUnavailable)
	// ErrEpoch: the lane is in another epoch than the one whose fence should change.
	ErrEpoch = errors.New("lane is in another epoch")
	// ErrVolatile: with its settings Redis may lose acknowledged writes. An error that wraps it
	// wraps ErrUnavailable too.
	ErrVolatile = errors.New("redis may lose acknowledged writes")
	// ErrRewrite: the append-only file is not complete yet, so a restart now would lose writes. A
	// former replica, and a server whose file was just switched on, must first rewrite it. It is an
	// ErrUnavailable.
	ErrRewrite = fmt.Errorf("redis must finish a rewrite before its append-only file is used: %w", ErrUnavailable)
	// ErrLanes: this Redis was used with another number of lanes.
	ErrLanes = errors.New("number of lanes differs from the one in use")
	// ErrAccess: Redis refuses this process, or its certificate is not trusted: an ErrAuth,
	// ErrRights, ErrTLS or ErrProtected. It stays until the settings of one side are corrected. An
	// error that wraps it wraps ErrUnavailable too.
	ErrAccess = errors.New("no access to redis")
	// ErrAuth: user or password is wrong or missing.
	ErrAuth = fmt.Errorf("%w: user or password is wrong or missing", ErrAccess)
	// ErrSentinelAuth: the sentinels refuse the password. It is an ErrAuth.
	ErrSentinelAuth = fmt.Errorf("the sentinels: %w", ErrAuth)
	// ErrRights: the user lacks rights; a *RightsError lists them when they were checked.
	ErrRights = fmt.Errorf("%w: rights are missing", ErrAccess)
	// ErrTLS: only one side uses TLS, or the certificate is not trusted.
	ErrTLS = fmt.Errorf("%w: TLS", ErrAccess)
	// ErrProtected: Redis is in protected mode: without a password it accepts its own host only.
	ErrProtected = fmt.Errorf("%w: protected mode", ErrAccess)
	// ErrClusterNode: Redis is a node of a Cluster, but the mode is single.
	ErrClusterNode = errors.New("redis is a node of a cluster: set the mode to cluster")

	// ErrNotFound: the packet is not in Redis; it may be in MySQL.
	ErrNotFound = fmt.Errorf("redis: %w", packet.ErrNotFound)
	// ErrGone: the pool to change is not in Redis. It is an ErrNotFound.
	ErrGone = fmt.Errorf("%w: %w", packet.ErrPoolGone, ErrNotFound)
	// ErrPast: expires_at is not in the future. Nothing was staged.
	ErrPast = fmt.Errorf("packet: %w", packet.ErrExpiresInPast)
	// ErrTooFar: opens_at is too far ahead. Nothing was staged.
	ErrTooFar = fmt.Errorf("%w: more than %v", packet.ErrOpensTooFar, packet.MaxOpensAhead)
	// ErrNotOpenYet: the packet is still being funded.
	ErrNotOpenYet = fmt.Errorf("packet: %w", packet.ErrNotOpenYet)
	// ErrState: the pool's state does not allow the call; a *StateError names it.
	ErrState = errors.New("pool is in another state")
	// ErrMalformed: Redis holds data that this program did not write.
	ErrMalformed = errors.New("malformed record in redis")

	// ErrLeaseLost: the lease of the worker slot expired; another worker may hold it.
	ErrLeaseLost = errors.New("worker slot lost")
	// ErrNoSlot: every worker slot is held.
	ErrNoSlot = errors.New("no free worker slot")
)

// StateError is an ErrState with the pool's state.
type StateError struct{ State packet.PoolState }

// Error implements error.
func (e *StateError) Error() string { return fmt.Sprintf("pool is %s", e.State) }

// Is matches ErrState.
func (e *StateError) Is(target error) bool { return target == ErrState }

// redisError adds the operation to an error of the client, and ErrUnavailable to transient
// ones. It is the only place that classifies them. Any other error is a mistake of ours,
// such as an error in a script.
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

// isReply reports whether Redis itself returned this error. All others concern the
// connection: dialing, timeouts, closed connections, contexts.
func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// accessKind returns the kind of ErrAccess for an error of the client library; nil for any other
// error, and for one that wraps ErrAccess already.
func accessKind(err error) error {
	switch {
	case errors.Is(err, ErrAccess):
		return nil
	case redis.IsAuthError(err): // NOAUTH, WRONGPASS
		return ErrAuth
	case redis.IsPermissionError(err): // NOPERM
		return ErrRights
	case isTLSAlert(err):
		return ErrTLS
	case redis.HasErrorPrefix(err, protectedCode):
		return ErrProtected
	}
	return nil
}

// protectedCode is the error code that a server in protected mode sends to each connection before closing it.
const protectedCode = "DENIED"

// transientCodes are the codes of transient error replies, of Redis or of a proxy in front
// of it. The client library has functions for some; a list is easier to review. A trailing
// blank excludes longer codes. Texts are without the word ERR in front.
var transientCodes = []string{
	"LOADING", "BUSY ", "READONLY", "MISCONF", "NOREPLICAS", "NOSCRIPT", "OOM", "EXECABORT", "UNBLOCKED",
	"MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED ", "ASK ", "REDIRECT", "INPROG", "NOMASTERLINK", "IOERR",
	"max number of clients",
	"Script killed by user", // by SCRIPT KILL, before it wrote
}

// isTransient reports whether an error reply is transient. The client returns MOVED and ASK
// only when it may not retry.
func isTransient(err error) bool {
	for _, code := range transientCodes {
		if redis.HasErrorPrefix(err, code) {
			return true
		}
	}
	return false
}
