package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"

	"hongbao/wire"
)

// livePart is a piece of the overview that the page replaces when it has changed.
type livePart struct {
	ID      string        `json:"id"` // of the element that contains it
	Version string        `json:"version"`
	HTML    template.HTML `json:"html"`
}

// liveNames are the names of the parts, each with a template of this name.
var liveNames = []string{"live-pulse", "live-verdict", "live-money", "live-hour", "live-open", "live-people", "live-health"}

// liveData is the data of the parts' templates.
type liveData struct {
	snapshot
	Verdict healthView
	Slices  []slice
	Whole   int64 // total width of the slices
	Charts  []chart
}

// liveParts renders the parts of the overview in one language.
func (c *Console) liveParts(l language, snap snapshot) ([]livePart, error) {
	data := liveData{snapshot: snap, Verdict: viewHealth(l, snap.Health)}
	if snap.Overview != nil {
		data.Slices = slicesOf(snap.Overview.Money)
	}
	for _, s := range data.Slices {
		data.Whole = s.X + s.Width
	}
	if snap.Activity != nil {
		data.Charts = []chart{
			chartOf(l, "grabs", snap.Activity.Minutes, func(m wire.ActiveMinute) *wire.Booked { return m.Grabs }),
			chartOf(l, "paid", snap.Activity.Minutes, func(m wire.ActiveMinute) *wire.Booked { return m.Paid }),
		}
	}
	out := make([]livePart, len(liveNames))
	for i, name := range liveNames {
		text, err := c.pages[l].render("overview", name, data)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		sum := sha256.Sum256([]byte(text))
		out[i] = livePart{ID: name, Version: hex.EncodeToString(sum[:6]), HTML: template.HTML(text)} // made by html/template
	}
	return out, nil
}
