package console

import "regexp"

// Timeline lines of the API from sources other than MySQL's payment rows.
var (
	handOffEntry      = regexp.MustCompile(`^(grab|creation) acknowledged, hand-off written(?:: seq (\d+), epoch (\d+))?$`)
	runEntry          = regexp.MustCompile(`^run (\S+) (?:started|ended: (\w+))$`)
	notificationEntry = regexp.MustCompile(`(?s)^notification for (\S+): event (.*)$`)
	outboxEntry       = regexp.MustCompile(`^start or wake-up pending: (\w+), attempts (\d+)$`)
)

// translateOtherSource translates such a line; false if the line has none of these forms.
func translateOtherSource(say func(key string, args ...any) string, what string) (string, bool) {
	if m := handOffEntry.FindStringSubmatch(what); m != nil {
		text := say("event." + m[1] + "_acknowledged")
		if m[2] != "" {
			text += say("event.place", m[2], m[3])
		}
		return text, true
	}
	if what == "not booked yet" {
		return say("event.not_booked"), true
	}
	if m := runEntry.FindStringSubmatch(what); m != nil {
		if m[2] == "" {
			return say("event.run_started", m[1]), true
		}
		status := m[2]
		if _, ok := catalogue["run."+status]; ok {
			status = say("run." + status)
		}
		return say("event.run_ended", m[1], status), true
	}
	if m := notificationEntry.FindStringSubmatch(what); m != nil {
		return say("event.notification", m[1], m[2]), true
	}
	if m := outboxEntry.FindStringSubmatch(what); m != nil {
		kind := m[1]
		if _, ok := catalogue["outbox."+kind]; ok {
			kind = say("outbox." + kind)
		}
		return say("event.outbox", kind, m[2]), true
	}
	return "", false
}
