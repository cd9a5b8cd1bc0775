package report

import (
	"context"

	"hongbao/internal/store/mysql"
)

// waitingDecisions counts the decisions that wait for an approval. An expired decision keeps status
// waiting until the next decision about its payment; it is not counted.
func (s *Source) waitingDecisions(ctx context.Context) (row backlogRow, err error) {
	now, err := s.db.Clock(ctx)
	if err != nil {
		return row, err
	}
	err = s.read(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM decisions FORCE INDEX (decisions_waiting) "+
		"WHERE "+mysql.StillWaits,
		now.Add(-mysql.ApprovalLife), now, now.Add(mysql.LongestWait)).Scan(&row).Error
	return row, mysql.Classify(err)
}
