package api

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"hongbao/internal/access"
	"hongbao/internal/packet"
	"hongbao/internal/staff"
	"hongbao/internal/ticket"
	"hongbao/wire"
)

// TicketKeys lists ticket keys and records their administration.
type TicketKeys interface {
	TicketKeys(ctx context.Context, f access.KeyFilter) ([]access.TicketKeyRecord, error)
	AddTicketKey(ctx context.Context, w staff.Write, k access.TicketKeyRecord,
		render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error)
	EndTicketKey(ctx context.Context, w staff.Write, id string,
		render func(access.TicketKeyRecord) (status int, body []byte)) (staff.Answer, error)
}

func renderTicketKey(k access.TicketKeyRecord) wire.TicketKey {
	return wire.TicketKey{ID: k.ID, AppID: k.AppID, Name: textOrNull(k.Name), PublicKey: base64.StdEncoding.EncodeToString(k.Public),
		Status:    wire.KeyStatus(k.Status()),
		CreatedAt: wire.At(k.CreatedAt), RevokedAt: timeOrNull(k.RevokedAt)}
}

func readTicketKeyFilter(q *query) access.KeyFilter {
	return access.KeyFilter{AppID: q.text("app_id", checkAppID)}
}

func listTicketKeys(r *request) (answer, error) {
	filter, given, after, limit, err := readList(r, readTicketKeyFilter)
	if err != nil {
		return answer{}, err
	}
	filter.AfterTime, filter.AfterID, filter.Limit = after.At, after.ID, limit+1
	ctx, cancel := context.WithTimeout(r.ctx, readTimeout)
	defer cancel()
	rows, err := r.server.cfg.Store.TicketKeys(ctx, filter)
	if err != nil {
		return answer{}, err
	}
	var page wire.List[wire.TicketKey]
	page.Items, page.NextCursor = pageOf(rows, limit, func(k access.TicketKeyRecord) listCursor {
		return listCursor{Filters: given, At: k.CreatedAt, ID: k.ID}
	}, renderTicketKey)
	return answer{status: http.StatusOK, body: page}, nil
}

// checkTicketKey never repeats the text in its fault: it may be a private key sent by mistake.
func checkTicketKey(s string) *fault {
	if _, err := ticket.ParseKey(s); err != nil {
		return &fault{faultFormat, "is not one Ed25519 public key in PEM"}
	}
	return nil
}

func readAddTicketKey(body []byte) (wire.AddTicketKey, error) {
	o, err := readObject(body)
	if err != nil {
		return wire.AddTicketKey{}, err
	}
	out := wire.AddTicketKey{AppID: valueOr(o.text("app_id", true, checkAppID), ""), PublicKey: valueOr(o.text("public_key", true,
		checkTicketKey),
		""),
		Name: valueOr(o.text("name", false, checkOwner), ""), Reason: valueOr(o.text("reason", true, checkReason), "")}
	return out, o.done()
}

func addTicketKey(r *request) (answer, error) {
	body, err := readAddTicketKey(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, err := r.staffWrite(body, body.Reason)
	if err != nil {
		return answer{}, err
	}
	w.Route = r.c.Method() + " " + r.route.path
	public, err := ticket.ParseKey(body.PublicKey)
	if err != nil {
		return answer{}, err
	}
	k := access.TicketKeyRecord{Name: body.Name, TicketKey: access.TicketKey{ID: access.TicketKeyID(public), AppID: body.AppID,
		Public: public}}
	stored, err := r.server.cfg.Store.AddTicketKey(r.ctx, w, k, func(k access.TicketKeyRecord) (int, []byte) {
		raw := encodeBody(renderTicketKey(k))
		return http.StatusCreated, raw
	})
	switch {
	case errors.Is(err, packet.ErrNotFound):
		return answer{}, invalidField("app_id", faultEnum, "is not the id of an app that exists")
	case errors.Is(err, access.ErrTicketKeyTaken):
		return answer{}, invalidField("public_key", faultDuplicate, "was added before; a revoked key cannot be added again")
	}
	return r.keyAnswer(stored, err, "ticket key")
}

func revokeTicketKey(r *request) (answer, error) {
	body, err := readReason(r.payload)
	if err != nil {
		return answer{}, err
	}
	w, id, err := r.keyWrite(body, body.Reason, "ticket key")
	if err != nil {
		return answer{}, err
	}
	stored, err := r.server.cfg.Store.EndTicketKey(r.ctx, w, id, func(k access.TicketKeyRecord) (int, []byte) {
		raw := encodeBody(renderTicketKey(k))
		return http.StatusOK, raw
	})
	return r.keyAnswer(stored, err, "ticket key")
}
