package pool

import (
	"strings"
	"testing"

	"hongbao/internal/packet"
)

// commandRecorder runs grab.lua and returns the names of the commands that it called.
func commandRecorder() string {
	_, source, _ := strings.Cut(sources[grabScript], "\n") // without the line with the flags
	return `
local names, real = {}, redis
local redis = setmetatable({call = function(name, ...) names[#names + 1] = name return real.call(name, ...) end}, {__index = real})
local function grab()
` + source + `
end
local reply = grab()
if type(reply) ~= 'table' or reply.err then return reply end
return table.concat(names, ' ')`
}

// TestGrabCommands: a call has no more commands than its outcome needs. They are in the order in which a
// call that stops between two of them does the least harm.
func TestGrabCommands(t *testing.T) { onEach(t, testGrabCommands) }

func testGrabCommands(t *testing.T, on setup) {
	p := on.openFresh(t)
	mates := laneMates(t, p, 8, 2)
	lane := packet.Lane(mates[0].ID, p.Lanes())
	open, guests, soldOut, funding, missing := mates[0], mates[1], mates[2], mates[3], mates[4]
	for _, pk := range append([]packet.Packet{open, soldOut}, mates[5:]...) {
		openPacket(t, p, pk)
	}
	openPacket(t, p, guests, "guest")
	stage(t, p, funding)
	mustGrab(t, p, soldOut.ID, "a")
	mustGrab(t, p, soldOut.ID, "b")
	mustGrab(t, p, open.ID, "a")

	const (
		fence  = "HMGET TIME "
		reads  = "HMGET HMGET " // packet, claims
		shares = "GETRANGE "
		writes = "HSET HSET " // packet, claims
		count  = "HSET "      // fence
	)
	for _, c := range []struct {
		outcome string
		grabs   [][2]string
		want    string
	}{
		{"won", [][2]string{{open.ID, "b"}}, fence + reads + shares + writes + "XADD " + count + "RPUSH"},
		{"repeated", [][2]string{{open.ID, "a"}}, fence + reads},
		{"won by a guest", [][2]string{{guests.ID, "guest"}}, fence + reads + "SMISMEMBER " + shares + writes + "XADD " + count + "RPUSH"},
		{"not invited", [][2]string{{guests.ID, "b"}}, fence + reads + "SMISMEMBER"},
		{"sold out", [][2]string{{soldOut.ID, "c"}}, fence + reads},
		{"not open yet", [][2]string{{funding.ID, "a"}}, fence + reads},
		{"not found", [][2]string{{missing.ID, "a"}}, fence + "HMGET"},
		{"two won of a packet", [][2]string{{mates[5].ID, "a"}, {mates[5].ID, "b"}}, fence + reads + shares + writes + "XADD " + count + "RPUSH"},
		{"won of two packets, and one repeated", [][2]string{{mates[6].ID, "a"}, {open.ID, "a"}, {mates[7].ID, "a"}},
			fence + reads + shares + reads + reads + shares + writes + writes + "XADD " + count + "RPUSH RPUSH"},
	} {
		batch := batchOf(t.Context(), c.grabs...)
		seen, err := p.checkFence(lane)
		must(t, err)
		sent := &call{lane: p.lanes[lane], batches: batch.batches}
		keys, args := sent.arguments(p.keys, token(seen.position(), p.process))
		got, err := p.rdb.Eval(t.Context(), commandRecorder(), keys, args...).Text()
		if got = strings.TrimSpace(got); err != nil || got != strings.TrimSpace(c.want) {
			t.Errorf("%s: %s, %v\nwant %s", c.outcome, got, err, c.want)
		}
	}
}
