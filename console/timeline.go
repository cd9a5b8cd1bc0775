package console

import (
	"maps"

	"hongbao/internal/sentence"
	"hongbao/wire"
)

// eventWords are the arguments of events that have labels, with the kinds of their labels.
var eventWords = map[string]string{"outcome": "outcome", "last": "outcome", "action": "action", "op": "op", "status": "run",
	"kind": "outbox"}

// eventText words an event of a timeline; an unknown one as the API does.
func eventText(l language, e wire.TimelineEntry) string {
	text, err := translate(l, "event."+string(e.Event))
	if err != nil {
		return e.What
	}
	args := maps.Clone(e.Args)
	for name, kind := range eventWords {
		if value, ok := args[name]; ok {
			args[name] = word(l, kind, value)
		}
	}
	return sentence.Fill(text, args)
}
