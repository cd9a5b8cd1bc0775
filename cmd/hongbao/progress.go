package main

import (
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
)

// meter displays the progress of one task: a live bar on a terminal, otherwise a few lines.
type meter interface {
	set(done int)
	end() // the work is over, complete or not
}

// newMeter starts a meter of total steps.
func newMeter(out io.Writer, label string, total int) meter {
	if onTerminal(out) {
		return newBarMeter(out, label, total)
	}
	m := &lineMeter{out: out, label: label, total: total, shown: -1}
	m.set(0)
	return m
}

// barMeter is a live bar.
type barMeter struct {
	writer  progress.Writer
	tracker *progress.Tracker
	done    chan struct{}
}

func newBarMeter(out io.Writer, label string, total int) *barMeter {
	m := &barMeter{
		writer:  progress.NewWriter(),
		tracker: &progress.Tracker{Message: label, Total: int64(total)},
		done:    make(chan struct{}),
	}
	m.writer.SetOutputWriter(out)
	m.writer.SetMessageLength(44)
	m.writer.SetUpdateFrequency(50 * time.Millisecond)
	m.writer.SetAutoStop(true)
	m.writer.AppendTracker(m.tracker)
	go func() {
		defer close(m.done)
		m.writer.Render()
	}()
	return m
}

func (m *barMeter) set(done int) { m.tracker.SetValue(int64(done)) }

func (m *barMeter) end() {
	if !m.tracker.IsDone() {
		m.tracker.MarkAsErrored()
	}
	<-m.done // drawn for the last time
}

// lineMeter prints a line at the start, at every fifth of the way and at the end.
type lineMeter struct {
	out   io.Writer
	label string
	total int
	shown int // fifths
}

func (m *lineMeter) set(done int) {
	fifths := 5 * done / max(m.total, 1)
	if fifths == m.shown {
		return
	}
	m.shown = fifths
	_, _ = fmt.Fprintf(m.out, "  %-44s %4d / %d\n", m.label, done, m.total)
}

func (m *lineMeter) end() {}
