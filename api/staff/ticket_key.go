package staff

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"hongbao/api/rest"
	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

func renderTicketKey(k access.TicketKeyRecord) wire.TicketKey {
	return wire.TicketKey{ID: k.ID, AppID: k.AppID, Name: rest.TextOrNull(k.Name), PublicKey: base64.StdEncoding.EncodeToString(k.Public),
		Status:    wire.KeyStatus(k.Status()),
		CreatedAt: wire.At(k.CreatedAt), RevokedAt: rest.TimeOrNull(k.RevokedAt)}
}

// ticketKeys is the list of ticket keys.
func (s *API) ticketKeys() rest.Listing[wire.TicketKeyFilter, wire.TicketKey] {
	return rest.Listing[wire.TicketKeyFilter, wire.TicketKey]{Name: "ticket keys", ID: "ticket key",
		Read: func(ctx context.Context, a rest.Selection[wire.TicketKeyFilter]) ([]wire.TicketKey, *rest.Position, error) {
			rows, err := s.cfg.Store.TicketKeys(ctx, access.KeyFilter{AppID: a.Filter.AppID, AfterTime: a.After.At, AfterID: a.After.ID,
				Limit: a.Limit + 1})
			return rest.Cut(rows, err, a.Limit,
				func(k access.TicketKeyRecord) rest.Position { return rest.Position{At: k.CreatedAt, ID: k.ID} }, renderTicketKey)
		}}
}

type addTicketKeyIn struct {
	rest.Change
	Body wire.AddTicketKey `in:"body"`
}

func (s *API) addTicketKey(ctx context.Context, in *addTicketKeyIn) (*rest.Stored[wire.TicketKey], error) {
	public, err := ticket.ParseKey(in.Body.PublicKey)
	if err != nil {
		return nil, err
	}
	k := access.TicketKeyRecord{Name: in.Body.Name, TicketKey: access.TicketKey{ID: access.TicketKeyID(public), AppID: in.Body.AppID,
		Public: public}}
	kept, err := s.cfg.Store.AddTicketKey(ctx, in.Write, k, func(k access.TicketKeyRecord) (int, []byte) {
		return http.StatusCreated, rest.EncodeBody(renderTicketKey(k))
	})
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return nil, rest.InvalidField("app_id", rest.FaultEnum, "is not the id of an app that exists")
	case errors.Is(err, access.ErrTicketKeyTaken):
		return nil, rest.InvalidField("public_key", rest.FaultDuplicate, "was added before; a revoked key cannot be added again")
	}
	return keyAnswer[wire.TicketKey](s, ctx, kept, err, nil)
}

type ticketKeyIn struct {
	rest.Change
	ID   string      `path:"id" of:"ticket key"`
	Body wire.Reason `in:"body"`
}

func (s *API) revokeTicketKey(ctx context.Context, in *ticketKeyIn) (*rest.Stored[wire.TicketKey], error) {
	kept, err := s.cfg.Store.EndTicketKey(ctx, in.Write, in.ID, func(k access.TicketKeyRecord) (int, []byte) {
		return http.StatusOK, rest.EncodeBody(renderTicketKey(k))
	})
	return keyAnswer[wire.TicketKey](s, ctx, kept, err, nil)
}
