package report

import (
	"context"
	"strings"
	"time"

	"hongbao/internal/observe"
	"hongbao/internal/staff"
	"hongbao/internal/store/mysql"
)

// retention reads what was removed of each table and the age of its oldest row.
func (r *HealthReader) retention(ctx context.Context, v *observe.HealthSnapshot) error {
	var rows []mysql.RetentionRow
	if err := r.source.read(ctx).Find(&rows).Error; err != nil {
		return err
	}
	removed := map[string]int64{}
	for _, row := range rows {
		removed[row.Name] = row.Removed
	}
	for _, one := range staff.Retentions {
		t := mysql.RetainedTables[one.Table]
		order, from := t.At, any(mysql.EverBefore)
		if t.ID != "" {
			order, from = t.ID, 0
		}
		index := t.From[:strings.Index(t.From, ")")+1]
		var oldest struct{ At *time.Time }
		// raw: index is FORCE INDEX
		err := r.source.read(ctx).Raw("SELECT b."+t.At+" AS at FROM "+index+" WHERE b."+order+" > ? ORDER BY b."+order+" LIMIT 1",
			from).Scan(&oldest).Error
		if err != nil {
			return err
		}
		v.Retention = append(v.Retention, observe.Retained{Table: string(one.Table), Removed: removed[string(one.Table)],
			Oldest: mysql.OrZero(oldest.At)})
	}
	return nil
}
