package history

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"hongbao/money"
)

// chance draws what people do. One belongs to one packet, so that packets do not
// depend on each other.
type chance struct{ *rand.Rand }

func newChance(number, packet uint64) chance {
	return chance{rand.New(rand.NewPCG(number, packet))}
}

// in reports what happens in so many of a thousand cases.
func (c chance) in(perMille float64) bool { return c.Float64()*1000 < perMille }

// about draws a time around mean: mostly shorter, now and then several times as long.
func (c chance) about(mean time.Duration) time.Duration {
	return max(time.Millisecond, time.Duration(c.ExpFloat64()*float64(mean)).Truncate(time.Millisecond))
}

// between draws a time from least to most, whole milliseconds.
func (c chance) between(least, most time.Duration) time.Duration {
	return (least + time.Duration(c.Int64N(int64(most-least)+1))).Truncate(time.Millisecond)
}

func pick[T any](c chance, of []T) T { return of[c.IntN(len(of))] }

// id draws an id of n bytes in hex.
func (c chance) id(n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(c.Uint32())
	}
	return hex.EncodeToString(raw)
}

// users is how many there are; some of them are at it far more often than others.
const users = 200_000

// user draws a user id.
func (c chance) user() string {
	return fmt.Sprintf("user%06d", int(users*math.Pow(c.Float64(), 2)))
}

var (
	nicknames = []string{"小明", "阿珍", "老王", "Lily", "大熊", "月亮", "Jack", "豆豆", "李娜", "晚风", "四叶草", "阿强"}
	greetings = []string{"恭喜发财，大吉大利", "新年快乐", "生日快乐", "开工大吉", "辛苦了", "", "Happy birthday", "周末愉快", "感谢大家"}
	perHead   = []money.Fen{66, 88, 100, 188, 200, 520, 666, 888, 1000, 1888, 5200, 8888}
	counts    = []int{1, 1, 2, 3, 5, 5, 8, 10, 10, 10, 15, 20, 30, 50}
)

// meanClaims is about how many claims a packet gets, as counts and leftover make it.
const meanClaims = 10.6

// size draws how many shares a packet has.
func (c chance) size() int {
	if c.in(4) {
		return 100 + c.IntN(300)
	}
	return pick(c, counts)
}

// total draws what is put into a packet of so many shares.
func (c chance) total(shares int) money.Fen {
	if shares == 1 && c.in(30) {
		return money.Fen(50_000 + 100*c.IntN(1500)) // somebody's wedding
	}
	return pick(c, perHead) * money.Fen(shares)
}
