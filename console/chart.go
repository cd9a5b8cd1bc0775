package console

import (
	"slices"

	"hongbao/internal/money"
	"hongbao/wire"
)

// Sizes of a chart in its own units; the browser scales it.
const (
	chartPitch  = 10 // from one bar to the next
	chartBar    = 8
	chartHeight = 100
)

// chart is a bar chart with one bar per minute.
type chart struct {
	ID, Title, About string
	Width, Height    int
	Bars             []bar
	Last             string // count of the last full minute
	Hour             string
	Uncounted        bool
}

// bar is one minute of a chart.
type bar struct {
	X, Y, Width, Height int
	Class               string
	Title               string
}

// chartOf returns the chart of one kind of booking. Non-zero bars are at least two units high.
func chartOf(l language, id string, minutes []wire.ActiveMinute, of func(wire.ActiveMinute) *wire.Booked) chart {
	c := chart{ID: id, Title: say(l, "chart."+id), Width: chartPitch * len(minutes), Height: chartHeight}
	var most, last, hour int64
	var amount money.Fen
	for i, m := range minutes {
		b := of(m)
		if b == nil {
			c.Uncounted = true
			continue
		}
		most, hour, amount = max(most, b.Count), hour+b.Count, amount+b.Amount
		if i == len(minutes)-2 {
			last = b.Count
		}
	}
	for i, m := range minutes {
		b, ago := of(m), len(minutes)-1-i
		one := bar{X: i*chartPitch + (chartPitch-chartBar)/2, Width: chartBar}
		switch {
		case b == nil:
			one.Class, one.Height = "gap", chartHeight
		case b.Count > 0:
			one.Height = 2 + int(b.Count*(chartHeight-2)/most)
		}
		one.Y = chartHeight - one.Height
		switch {
		case b == nil:
		case ago == 0:
			one.Class, one.Title = "unfinished", say(l, "chart.bar_now", grouped(b.Count), yuan(b.Amount))
		default:
			one.Title = say(l, "chart.bar", ago, grouped(b.Count), yuan(b.Amount))
		}
		if one.Height > 0 {
			c.Bars = append(c.Bars, one)
		}
	}
	c.Last, c.Hour = grouped(last), say(l, "chart.hour", grouped(hour), yuan(amount), grouped(most))
	c.About = say(l, "chart.about", c.Last, grouped(hour), yuan(amount), grouped(most))
	return c
}

// newestFirst returns the minutes in reverse order.
func newestFirst(minutes []wire.ActiveMinute) []wire.ActiveMinute {
	out := slices.Clone(minutes)
	slices.Reverse(out)
	return out
}

// slice is a segment of the bar of all funded money.
type slice struct {
	Key    string
	X      int64
	Width  int64
	Amount money.Fen
}

// sliceUnits is the width of that bar in its own units.
const sliceUnits = 1000

// slicesOf returns the segments of the funded money. Non-zero segments are at least three units
// wide; negative amounts, which are errors, have none.
func slicesOf(f *wire.Funds) []slice {
	if f == nil || f.Funded <= 0 {
		return nil
	}
	var out []slice
	at := int64(0)
	for _, one := range []slice{{Key: "paid", Amount: f.Paid}, {Key: "owed", Amount: f.Owed}, {Key: "remaining", Amount: f.Remaining},
		{Key: "refunding", Amount: f.Refunding}, {Key: "refunded", Amount: f.Refunded}} {
		if one.Amount <= 0 {
			continue
		}
		one.X = at
		one.Width = max(3, share(one.Amount, f.Funded))
		at += one.Width
		out = append(out, one)
	}
	return out
}

// share returns part of whole in units of the bar, without overflow of 64 bits.
func share(part, whole money.Fen) int64 {
	for whole > 1<<52 {
		part, whole = part>>1, whole>>1
	}
	return min(sliceUnits, int64(part)*sliceUnits/int64(whole))
}
