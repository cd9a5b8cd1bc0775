package api

import (
	"strconv"
	"testing"
)

// TestCacheBounded: whatever is put in, no more than the limit stays, and what is
// asked for again and again stays longest.
func TestCacheBounded(t *testing.T) {
	for _, weight := range []int{1, 7, 40, 60} {
		c := newWeighedCache(100, func(w int) int { return w })
		c.put("asked", weight)
		for i := range 1000 {
			c.put(strconv.Itoa(i), weight)
			if v, ok := c.get("asked"); !ok || v != weight {
				t.Fatalf("weight %d: %d, %t after %d others", weight, v, ok, i+1)
			}
			if n := len(c.young) + len(c.old); n > max(2, 100/weight) {
				t.Fatalf("%d values of weight %d are kept", n, weight)
			}
		}
	}
}

// TestCacheReplaces: the same key twice weighs once.
func TestCacheReplaces(t *testing.T) {
	c := newWeighedCache(100, func(w int) int { return w })
	for i := range 1000 {
		c.put("a", i%40+1)
		if v, ok := c.get("a"); !ok || v != i%40+1 || c.weight != v || len(c.old) != 0 {
			t.Fatalf("%d, %t; weight %d", v, ok, c.weight)
		}
	}
}

// TestCache: bounded, and what is asked for stays.
func TestCache(t *testing.T) {
	c := newCache[int](100)
	key := func(i int) string { return string(rune('a'+i%26)) + string(rune('0'+i/26)) }
	for i := range 1000 {
		c.put(key(i), i)
		c.put("kept", -1)
		if len(c.young)+len(c.old) > 100 {
			t.Fatalf("%d values", len(c.young)+len(c.old))
		}
	}
	if v, ok := c.get("kept"); !ok || v != -1 {
		t.Error("what was asked for all the time is gone")
	}
	if _, ok := c.get(key(0)); ok {
		t.Error("the first one is still there")
	}
}
