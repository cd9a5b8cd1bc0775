package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"hongbao/access"
	"hongbao/api"
	"hongbao/devstack/stacktest"
	"hongbao/test/wait"
)

// TestEndSignIn: a sign-in that is ended in one process is ended in every one, also
// in those that start while MySQL is away; what cannot be noted is not said to be.
func TestEndSignIn(t *testing.T) {
	t.Parallel()
	redis := stacktest.FreshRedis(t)
	mysql, dsn := stacktest.FreshMariaDB(t)
	h := newHouse(t, parts{redis: redis.Addr, dsn: dsn})
	process := func() *api.Server {
		t.Helper()
		server, err := api.New(h.cfg)
		h.check(err)
		h.check(server.Listen())
		stop := h.serve(server)
		t.Cleanup(func() { h.check(stop()) })
		wait.Until(h.t, "keys are known", func() bool {
			_, _, ok := server.Holder(h.finance.key.ID)
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
	wait.Until(h.t, "the copy in Redis knows it", func() bool {
		blob, err := h.pool.LoadApps(t.Context())
		h.check(err)
		var kept struct{ Ended []access.EndedSignIn }
		h.check(json.Unmarshal(blob, &kept))
		return len(kept.Ended) == 1
	})
	mysql.Kill()
	if err := one.EndSignIn(t.Context(), other, h.finance.key.ID, until); err == nil || one.SignInEnded(other) {
		t.Errorf("what was not noted counts as ended: %v", err)
	}
	if three := process(); !three.SignInEnded(id) || three.SignInEnded(other) {
		t.Error("a process that started without MySQL does not know it")
	}
}
