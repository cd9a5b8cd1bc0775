package api

import (
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hongbao/internal/money"
	"hongbao/internal/packet"
	"hongbao/internal/payout"
)

// stampLayout is the layout of every time in answers: RFC 3339, UTC, milliseconds.
const stampLayout = "2006-01-02T15:04:05.000Z"

// Stamp is a time in answers.
type Stamp time.Time

// String returns the time in stampLayout.
func (s Stamp) String() string { return time.Time(s).UTC().Format(stampLayout) }

// MarshalJSON implements json.Marshaler.
func (s Stamp) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// Schema implements huma.SchemaProvider.
func (Stamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Pattern: `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
		Examples: []any{"2026-02-17T20:00:00.000Z"}}
}

// Nullable is a value or null.
type Nullable[T any] struct{ Value *T }

// orNull returns a Nullable of an optional value.
func orNull[T any](v *T) Nullable[T] { return Nullable[T]{Value: v} }

// stampOrNull maps the zero time to null.
func stampOrNull(t time.Time) Nullable[Stamp] {
	if t.IsZero() {
		return Nullable[Stamp]{}
	}
	s := Stamp(t)
	return orNull(&s)
}

// textOrNull maps the empty text to null.
func textOrNull(s string) Nullable[string] {
	if s == "" {
		return Nullable[string]{}
	}
	return orNull(&s)
}

// MarshalJSON implements json.Marshaler.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return encode(n.Value) }

// UnmarshalJSON implements json.Unmarshaler, for stored answers.
func (n *Nullable[T]) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &n.Value) }

// Schema implements huma.SchemaProvider: the value's own schema, or null.
func (Nullable[T]) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{r.Schema(typeOf[T](), true, ""), {Type: "null"}}}
}

// Fen is an amount in answers and requests: a whole number of fen.
type Fen money.Fen

// Schema implements huma.SchemaProvider.
func (Fen) Schema(huma.Registry) *huma.Schema {
	low, high := float64(0), float64(money.Max)
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
}

// TotalFen is a sum of amounts: a number while every JSON reader can hold it exactly, else a
// string of its digits.
type TotalFen money.Fen

// Schema implements huma.SchemaProvider.
func (TotalFen) Schema(r huma.Registry) *huma.Schema { return orDigits(Fen(0).Schema(r)) }

// MarshalJSON implements json.Marshaler.
func (f TotalFen) MarshalJSON() ([]byte, error) { return money.Fen(f).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler, for stored answers.
func (f *TotalFen) UnmarshalJSON(raw []byte) error { return (*money.Fen)(f).UnmarshalJSON(raw) }

// NetFen is a sum that may be negative: a balance or a difference.
type NetFen money.Fen

// Schema implements huma.SchemaProvider.
func (NetFen) Schema(r huma.Registry) *huma.Schema {
	s, low := Fen(0).Schema(r), -float64(money.Max)
	s.Minimum = &low
	return orDigits(s)
}

// MarshalJSON implements json.Marshaler.
func (f NetFen) MarshalJSON() ([]byte, error) { return money.Fen(f).MarshalJSON() }

func orDigits(number *huma.Schema) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{number, {Type: huma.TypeString, Pattern: "^-?[0-9]{16,19}[+]?$"}}}
}

// Amount is a positive Fen.
type Amount money.Fen

// Schema implements huma.SchemaProvider.
func (Amount) Schema(r huma.Registry) *huma.Schema {
	s, one := Fen(0).Schema(r), float64(1)
	s.Minimum = &one
	return s
}

// PacketStatus is packet.Status with its schema.
type PacketStatus packet.Status

// Schema implements huma.SchemaProvider.
func (PacketStatus) Schema(huma.Registry) *huma.Schema { return enum(packet.Statuses) }

// PayoutStatus is payout.Status with its schema.
type PayoutStatus payout.Status

// Schema implements huma.SchemaProvider.
func (PayoutStatus) Schema(huma.Registry) *huma.Schema { return enum(payout.Statuses) }

// SplitMode is packet.SplitMode with its schema.
type SplitMode packet.SplitMode

// Schema implements huma.SchemaProvider.
func (SplitMode) Schema(huma.Registry) *huma.Schema { return enum(packet.SplitModes) }

// enum returns a schema of the domain's values, so that the document stays complete.
func enum[T ~string](values []T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}
