package api

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

func renderTicketKey(k access.TicketKeyRecord) wire.TicketKey {
	return wire.TicketKey{ID: k.ID, AppID: k.AppID, Name: textOrNull(k.Name), PublicKey: base64.StdEncoding.EncodeToString(k.Public),
		Status:    wire.KeyStatus(k.Status()),
		CreatedAt: wire.At(k.CreatedAt), RevokedAt: timeOrNull(k.RevokedAt)}
}

// ticketKeys is the list of ticket keys.
func (s *API) ticketKeys() listing[wire.TicketKeyFilter, wire.TicketKey] {
	return listing[wire.TicketKeyFilter, wire.TicketKey]{"ticket keys", "ticket key",
		func(ctx context.Context, a selection[wire.TicketKeyFilter]) ([]wire.TicketKey, *position, error) {
			rows, err := s.cfg.Store.TicketKeys(ctx, access.KeyFilter{AppID: a.filter.AppID, AfterTime: a.after.At, AfterID: a.after.ID,
				Limit: a.limit + 1})
			return cut(rows, err, a.limit, func(k access.TicketKeyRecord) position { return position{k.CreatedAt, k.ID} }, renderTicketKey)
		}}
}

type addTicketKeyIn struct {
	Change
	Body wire.AddTicketKey `in:"body"`
}

func (s *API) addTicketKey(ctx context.Context, in *addTicketKeyIn) (*stored[wire.TicketKey], error) {
	public, err := ticket.ParseKey(in.Body.PublicKey)
	if err != nil {
		return nil, err
	}
	k := access.TicketKeyRecord{Name: in.Body.Name, TicketKey: access.TicketKey{ID: access.TicketKeyID(public), AppID: in.Body.AppID,
		Public: public}}
	kept, err := s.cfg.Store.AddTicketKey(ctx, in.Write, k, func(k access.TicketKeyRecord) (int, []byte) {
		return http.StatusCreated, encodeBody(renderTicketKey(k))
	})
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return nil, invalidField("app_id", faultEnum, "is not the id of an app that exists")
	case errors.Is(err, access.ErrTicketKeyTaken):
		return nil, invalidField("public_key", faultDuplicate, "was added before; a revoked key cannot be added again")
	}
	return keyAnswer[wire.TicketKey](s, ctx, kept, err, nil)
}

type ticketKeyIn struct {
	Change
	ID   string      `path:"id" of:"ticket key"`
	Body wire.Reason `in:"body"`
}

func (s *API) revokeTicketKey(ctx context.Context, in *ticketKeyIn) (*stored[wire.TicketKey], error) {
	kept, err := s.cfg.Store.EndTicketKey(ctx, in.Write, in.ID, func(k access.TicketKeyRecord) (int, []byte) {
		return http.StatusOK, encodeBody(renderTicketKey(k))
	})
	return keyAnswer[wire.TicketKey](s, ctx, kept, err, nil)
}
