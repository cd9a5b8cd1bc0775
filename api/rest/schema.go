package rest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/access"
	"hongbao/internal/campaign"
	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
	"hongbao/internal/staff"
	"hongbao/wire"
)

// basics are the schemas of the types of package wire that are no objects. Enumerations have the domain's values, so
// that the document stays complete.
var basics = map[reflect.Type]func() *huma.Schema{
	typeOf[wire.Time](): func() *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: "date-time", Pattern: `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
			Examples: []any{"2026-02-17T20:00:00.000Z"}}
	},
	typeOf[wire.Date](): func() *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: "date", Examples: []any{"2026-02-17"}}
	},
	typeOf[money.Fen](): func() *huma.Schema { return amountSchema(0) },
	typeOf[wire.State](): func() *huma.Schema { // members depend on the action
		return &huma.Schema{AnyOf: []*huma.Schema{{Type: huma.TypeObject, AdditionalProperties: true}, {Type: "null"}},
			Examples: []any{map[string]any{"status": "failed"}}}
	},
	typeOf[wire.Code](): func() *huma.Schema {
		s := &huma.Schema{Type: huma.TypeString, Description: "The error code, for programs."}
		for _, r := range catalogue {
			s.Enum = append(s.Enum, string(r.code))
		}
		return s
	},
	typeOf[wire.PacketStatus]():         enum(packet.Statuses),
	typeOf[wire.StoredStatus]():         enum(storedStatuses),
	typeOf[wire.PayoutStatus]():         enum(payout.Statuses),
	typeOf[wire.RecipientAction]():      enum(payout.RecipientActions),
	typeOf[wire.AuthorizationStatus]():  enum(payout.AuthorizationStatuses),
	typeOf[wire.Split]():                enum(packet.SplitModes),
	typeOf[wire.CampaignStatus]():       enum(campaign.Statuses),
	typeOf[wire.CampaignDayStatus]():    enum([]campaign.DayStatus{campaign.DayCreating, campaign.DayCreated, campaign.DayMissed}),
	typeOf[wire.CloseStatus]():          enum([]wire.CloseStatus{wire.CloseOpen, wire.CloseProvisional, wire.CloseFinal}),
	typeOf[wire.ReconciliationStatus](): enum(reconciliationStatuses),
	typeOf[wire.Role]():                 enum(access.Roles),
	typeOf[wire.KeyStatus]():            enum(access.KeyStatuses),
	typeOf[wire.EventCode]():            enum(payout.EventCodes),
}

var storedStatuses = []packet.Status{packet.StatusFunding, packet.StatusRejected, packet.StatusOpen, packet.StatusClosing,
	packet.StatusClosed}

func enum[T ~string](values []T) func() *huma.Schema {
	return func() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Enum: anys(values)} }
}

func amountSchema(low float64) *huma.Schema {
	high := float64(money.Max)
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
}

// listSchemas are the names of lists in the document, and the descriptions of their members if they differ.
var listSchemas = map[reflect.Type]struct{ name, items, cursor string }{
	typeOf[wire.List[wire.Packet]](): {name: "Packets",
		items: "Newest first. A page may have fewer items than limit; the list ends when next_cursor is null."},
	typeOf[wire.List[wire.StaffPacket]](): {name: "StaffPackets",
		items: "Newest first. A page may have fewer items than limit; the list ends when next_cursor is null."},
	typeOf[wire.List[wire.Claim]]():         {name: "Claims"},
	typeOf[wire.List[wire.UserClaim]]():     {name: "UserClaims"},
	typeOf[wire.List[wire.Payout]]():        {name: "Payouts"},
	typeOf[wire.List[wire.Refund]]():        {name: "Refunds"},
	typeOf[wire.List[wire.ApprovalItem]]():  {name: "Approvals"},
	typeOf[wire.List[wire.StaffHold]]():     {name: "StaffHolds"},
	typeOf[wire.List[wire.AuditEntry]]():    {name: "AuditEntries"},
	typeOf[wire.List[wire.Break]]():         {name: "Breaks"},
	typeOf[wire.List[wire.Campaign]]():      {name: "Campaigns"},
	typeOf[wire.List[wire.StaffCampaign]](): {name: "StaffCampaigns"},
	typeOf[wire.List[wire.CampaignDay]](): {name: "CampaignDays",
		items: "Newest first, without days on which the campaign was paused."},
	typeOf[wire.List[wire.CloseSummary]]():   {name: "Closes", items: "Newest first: every day since the first ledger entry."},
	typeOf[wire.List[wire.APIKey]]():         {name: "APIKeys"},
	typeOf[wire.List[wire.TicketKey]]():      {name: "TicketKeyPage"},
	typeOf[wire.List[wire.Reconciliation]](): {name: "Reconciliations"},
	typeOf[wire.List[wire.Provider]](): {name: "Providers", items: "Sorted by name.",
		cursor: "Always null: all providers are on one page."},
	typeOf[wire.List[wire.PaymentProvider]](): {name: "PaymentProviders", items: "Sorted by name.",
		cursor: "Always null: all providers are on one page."},
}

// refundIDs are the types whose id is that of a refund, though they share the member with payouts.
var refundIDs = []reflect.Type{typeOf[wire.Refund](), typeOf[wire.RefundDetail](), typeOf[wire.RefundAt]()}

func schemaName(t reflect.Type, hint string) string {
	if list, ok := listSchemas[t]; ok {
		return list.name
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// contract is a registry that knows the types and tags of package wire; member is the member whose schema is made.
type contract struct {
	huma.Registry
	member reflect.StructField
}

// Schema implements huma.Registry.
func (c contract) Schema(t reflect.Type, allowRef bool, hint string) *huma.Schema {
	json := c.member.Tag.Get("json")
	null := t.Kind() == reflect.Pointer && json != "" && !strings.Contains(json, ",omitempty") || c.member.Tag.Get("orNull") != ""
	of := t
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	var s *huma.Schema
	switch basic := basics[of]; {
	case basic != nil:
		s = basic()
	case null:
		s = c.Registry.Schema(of, allowRef, hint)
	default:
		s = c.Registry.Schema(t, allowRef, hint)
	}
	switch digits := []*huma.Schema{s, {Type: huma.TypeString, Pattern: "^-?[0-9]{16,19}[+]?$"}}; c.member.Tag.Get("fen") {
	case "positive":
		s = amountSchema(1)
	case "sum":
		s = &huma.Schema{AnyOf: digits}
	case "net":
		digits[0] = amountSchema(-float64(money.Max))
		s = &huma.Schema{AnyOf: digits}
	}
	var others []*huma.Schema
	if c.member.Tag.Get("orText") != "" {
		shortest, longest := 1, packet.MaxUserIDBytes
		others = append(others, &huma.Schema{Type: huma.TypeString, MinLength: &shortest, MaxLength: &longest})
	}
	if null {
		others = append(others, &huma.Schema{Type: "null"})
	}
	if others != nil {
		return &huma.Schema{AnyOf: append([]*huma.Schema{s}, others...)}
	}
	return s
}

// newRegistry returns a registry of the schemas of all bodies. huma makes the objects; their members are made again by
// contract.
func newRegistry(routes []*Route) huma.Registry {
	reg := huma.NewMapRegistry("#/components/schemas/", schemaName)
	reg.Schema(typeOf[wire.Problem](), true, "")
	for _, r := range routes {
		if r.Body != nil {
			reg.Schema(reflect.TypeOf(r.Body), true, "")
		}
		for _, a := range r.Answers {
			if a.Body != nil {
				reg.Schema(reflect.TypeOf(a.Body), true, "")
			}
		}
	}
	for name, s := range reg.Map() {
		t := reg.TypeFromRef("#/components/schemas/" + name)
		for _, f := range reflect.VisibleFields(t) {
			member, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if s.Properties[member] != nil {
				s.Properties[member] = huma.SchemaFromField(contract{reg, f}, f, t.Name()+f.Name)
			}
		}
		if slices.Contains(refundIDs, t) {
			s.Properties["id"].Examples = []any{things["refund"].example}
		}
		if list := listSchemas[t]; list.items != "" {
			s.Properties["items"].Description = list.items
			if list.cursor != "" {
				s.Properties["next_cursor"].Description = list.cursor
			}
		}
	}
	return reg
}

var reconciliationStatuses = []staff.ReconciliationStatus{staff.ReconciliationRequested, staff.ReconciliationRunning,
	staff.ReconciliationDone, staff.ReconciliationFailed}
