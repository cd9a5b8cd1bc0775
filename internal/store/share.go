package store

import (
	"fmt"
	"strconv"
	"time"

	"hongbao/internal/money"
)

type shareRow struct {
	PacketID   string `gorm:"primaryKey"`
	ShareIndex int    `gorm:"primaryKey"`
	Amount     int64
	UserID     *string
	ClaimedAt  *time.Time
}

func (shareRow) TableName() string { return "shares" }

// insertShares is how many shares one statement inserts: at most 340 KB, which every server accepts.
// Larger ones are not faster.
const insertShares = 20_000

// putShares inserts one row a share, amounts[i] with index i. MySQL generates the rows from the list
// of amounts: sending and parsing a million VALUES rows takes longer than writing them.
func (tx tx) putShares(packetID string, amounts []money.Fen) error {
	var list []byte
	for from := 0; from < len(amounts); from += insertShares {
		part := amounts[from:min(from+insertShares, len(amounts))]
		list = append(list[:0], '[')
		for _, a := range part {
			list = append(strconv.AppendInt(list, int64(a), 10), ',')
		}
		list[len(list)-1] = ']'
		// raw: INSERT ... SELECT
		res := tx.Exec(`INSERT INTO shares (packet_id, share_index, amount)
			SELECT ?, ? + j.n, j.amount FROM JSON_TABLE(?, '$[*]' COLUMNS (n FOR ORDINALITY, amount BIGINT PATH '$')) j`,
			packetID, from-1, string(list))
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected != int64(len(part)) {
			return fmt.Errorf("packet %s: %d of %d shares written from index %d on", packetID, res.RowsAffected, len(part), from)
		}
	}
	return nil
}
