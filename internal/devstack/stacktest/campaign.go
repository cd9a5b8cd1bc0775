package stacktest

import (
	"testing"
	"time"
)

// CampaignDay decides a day of a campaign, whether it is due or not, and leaves the
// campaign as it is.
func CampaignDay(t testing.TB, dsn, campaign, day, status, packetID string, opens time.Time) {
	t.Helper()
	db, err := openForSchema(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), "INSERT INTO campaign_days (campaign_id, day, status, packet_id, opens_at, decided_at) VALUES "+
		"(?, ?, ?, ?, ?, UTC_TIMESTAMP(3))",
		campaign, day, status, packetID, opens.UTC()); err != nil {
		t.Fatal(err)
	}
}
