package api_test

import (
	"testing"
	"time"

	"hongbao/api"
	"hongbao/internal/devstack/stacktest"
	"hongbao/test/wait"
)

// TestEndSignIn: a sign-in that is ended in one process is ended in every one; what cannot be
// noted is not said to be. A process that starts while MySQL is away takes no sign-in.
func TestEndSignIn(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	mysql, dsn := stacktest.FreshMariaDB(t)
	h := newFixture(t, parts{redis: redis.Addr, dsn: dsn})
	process := func() *api.Server {
		t.Helper()
		server, err := api.New(h.cfg)
		h.check(err)
		h.check(server.Listen())
		stop := h.serve(server)
		t.Cleanup(func() { h.check(stop()) })
		wait.Until(h.t, "keys are known", func() bool {
			_, _, ok := server.KeyOwner(h.finance.key.ID)
			return ok
		})
		return server
	}
	one, two := process(), process()
	id, other, until := []byte("ended"), []byte("other"), time.Now().Add(time.Hour)
	if one.SignInEnded(id) || two.SignInEnded(id) {
		t.Fatal("ended before anybody ended it")
	}
	h.check(one.EndSignIn(t.Context(), id, h.finance.key.ID, until))
	if !one.SignInEnded(id) {
		t.Error("not ended at once where it was ended")
	}
	wait.Until(h.t, "ended in the other process", func() bool { return two.SignInEnded(id) })
	h.check(two.EndSignIn(t.Context(), id, h.finance.key.ID, until))
	if one.SignInEnded(other) || two.SignInEnded(other) {
		t.Error("another sign-in was ended too")
	}
	mysql.Kill()
	if err := one.EndSignIn(t.Context(), other, h.finance.key.ID, until); err == nil || one.SignInEnded(other) {
		t.Errorf("what was not noted counts as ended: %v", err)
	}
	// A process that starts now has no staff keys: no user is signed in there.
	three, err := api.New(h.cfg)
	h.check(err)
	h.check(three.Listen())
	stop := h.serve(three)
	t.Cleanup(func() { h.check(stop()) })
	if _, _, ok := three.KeyOwner(h.finance.key.ID); ok || three.KeysLoaded() {
		t.Error("a process that started without MySQL knows keys of staff")
	}
	if _, ok, err := three.SignIn(t.Context(), h.finance.token); ok || err == nil {
		t.Errorf("signed in without MySQL: %v", err)
	}
}
