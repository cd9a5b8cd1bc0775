package bench

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The plots are drawn here and not by a library: chart libraries need fonts or produce bitmaps, and none draws grouped bars with
// whiskers. The same numbers give the same bytes, so a diff shows what has changed. The background is white, because black text
// on a transparent background is unreadable on a dark page.

const (
	plotWidth  = 760
	valueWidth = 90 // right of the bars
	barHeight  = 18
	barGap     = 4
	groupGap   = 12
	titleSpace = 44
	axisSpace  = 34
)

// shades can be distinguished without red or green (Okabe and Ito).
var shades = []string{"#999999", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"}

// scale turns values into pixels from the left edge of the bars.
type scale struct {
	names     float64 // width of the names to the left of the bars
	width     float64 // of the longest bar
	low, high float64
	log       bool
}

// letter is the approximate width of a letter in pixels. The reader's browser chooses the font.
const letter = 7.2

func (p *plot) scale() scale {
	s := scale{log: p.log, names: 110}
	low := math.Inf(1)
	for _, b := range p.bars {
		s.names = min(max(s.names, 20+math.Ceil(letter*float64(len(b.name)))), plotWidth/2)
		s.high, low = max(s.high, b.max), min(low, b.min)
	}
	s.width = plotWidth - valueWidth - s.names
	switch {
	case p.log:
		s.low, s.high = math.Pow(10, math.Floor(math.Log10(low)*1.0000001)), math.Pow(10, math.Ceil(math.Log10(s.high)))
		if s.low == s.high {
			s.high *= 10
		}
		if s.low == low { // otherwise the shortest bar would have no length
			s.low /= 10
		}
	case s.high == 0:
		s.high = 1
	}
	return s
}

func (s scale) x(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.log {
		part = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return math.Round(part*s.width*10) / 10
}

// ticks are round values on the axis.
func (s scale) ticks() (out []float64) {
	if s.log {
		for v := s.low; v <= s.high*1.001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high)))
	for _, part := range []float64{5, 2, 1} {
		if s.high/(step/part) <= 7 {
			step /= part
			break
		}
	}
	for n := 0.0; n*step <= s.high*1.0001; n++ {
		out = append(out, n*step)
	}
	return out
}

// figure formats a value with three significant digits or all digits before the point, and commas between thousands.
func figure(v float64) string {
	digits := 0
	if v != 0 && v < 100 {
		digits = max(0, 2-int(math.Floor(math.Log10(v))))
	}
	text := strconv.FormatFloat(v, 'f', min(digits, 6), 64)
	whole, rest, fraction := strings.Cut(text, ".")
	if rest = strings.TrimRight(rest, "0"); fraction && rest != "" {
		rest = "." + rest
	} else {
		rest = ""
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return whole + rest
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// svg draws the plot.
func (p *plot) svg() string {
	var body strings.Builder
	text := func(x, y float64, attrs, s string) {
		fmt.Fprintf(&body, "<text x=\"%g\" y=\"%g\"%s>%s</text>\n", x, y, attrs, escape(s))
	}
	s, shade := p.scale(), map[string]string{}
	y, group, spreads := float64(titleSpace), "", false
	for i, b := range p.bars {
		if b.group != group || i == 0 {
			if y += groupGap; b.group != "" {
				text(12, y+12, ` font-weight="600"`, b.group)
				y += barHeight
			}
			group = b.group
		}
		if shade[b.name] == "" {
			shade[b.name] = shades[len(shade)%len(shades)]
		}
		middle := y + barHeight/2
		text(s.names-8, middle+4, ` text-anchor="end"`, b.name)
		fmt.Fprintf(&body, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%d\" fill=\"%s\"><title>%s</title></rect>\n",
			s.names, y, s.x(b.median), barHeight, shade[b.name],
			escape(fmt.Sprintf("%s: %s %s (%s to %s)", b.name, figure(b.median), p.unit, figure(b.min), figure(b.max))))
		if b.min != b.max {
			spreads = true
			least, most := s.names+s.x(b.min), s.names+s.x(b.max)
			fmt.Fprintf(&body, "<path d=\"M%g %gH%gM%g %gv8M%g %gv8\" stroke=\"#222\" fill=\"none\"/>\n", least, middle, most, least, middle-4, most,
				middle-4)
		}
		text(s.names+s.x(b.max)+6, middle+4, "", figure(b.median))
		y += barHeight + barGap
	}
	bottom := y + 4
	var grid strings.Builder
	for _, v := range s.ticks() {
		x := s.names + s.x(v)
		fmt.Fprintf(&grid, "<path d=\"M%g %dV%g\" stroke=\"#ddd\"/>\n", x, titleSpace, bottom)
		text(x, bottom+14, ` text-anchor="middle" fill="#555" font-size="11"`, figure(v))
	}
	axis := p.unit
	if p.log {
		axis += ", logarithmic"
	}
	if spreads {
		axis += "; median, from the least to the most of the runs"
	}
	text(s.names, bottom+30, ` fill="#555" font-size="11"`, axis)
	height := bottom + axisSpace + 4
	size := min(16, plotWidth/(0.65*float64(len(p.title)+1))) // a long title gets a smaller font
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" viewBox=\"0 0 %d %g\" role=\"img\" "+
		"aria-label=\"%s\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n<rect width=\"100%%\" height=\"100%%\" "+
		"fill=\"#fff\"/>\n<text x=\"12\" y=\"26\" font-size=\"%.3g\" font-weight=\"600\">%s</text>\n%s%s</svg>\n",
		plotWidth, height, plotWidth, height, escape(p.title), size, escape(p.title), grid.String(), body.String())
}
