package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"hongbao/internal/payout"
)

var takePictures = flag.Bool("pictures", false, "take the pictures of docs/pictures")

// pictures is the folder of the pictures in the documents.
const pictures = "../../docs/pictures"

// TestPictures takes the pictures of the documents from the running console: go test
// ./console/browser -run TestPictures -pictures
func TestPictures(t *testing.T) {
	if !*takePictures {
		t.Skip("takes the pictures of the documents, with -pictures")
	}
	h := newTestbed(t, nil)
	evening := h.open(map[string]any{"sender_id": "lin-mei", "total_amount": 88_888, "share_count": 9, "greeting": "恭喜发财，大吉大利！"})
	names := []struct{ user, nickname string }{{"wang-lei", "王磊"}, {"zhao-min~frozen", "赵敏"}, {"chen-hao", "陈浩"}, {"sun-yue", "孙悦"},
		{"anna.k", "Anna"},
		{"liu-yang~declined", "刘洋"}, {"tom.b", "Tom"}, {"he-jing", "何静"}}
	ids := map[string]string{}
	for _, n := range names {
		ids[n.user] = h.grab(evening, n.user, n.nickname)
	}
	h.finish(evening)
	office := h.open(map[string]any{"sender_id": "acme-hr", "total_amount": 600_000, "share_count": 6, "split": "equal",
		"greeting": "Happy New Year from the whole team"})
	for _, user := range []string{"maria.g", "zhou-ting~frozen", "oliver.p", "xu-fei~frozen"} {
		ids[user] = h.grab(office, user, "")
	}
	h.decide(h.second, ids["xu-fei~frozen"], "cancel", "left the company, agreed with HR")
	en, zh := h.newTab("en"), h.newTab("zh-CN")
	en.signIn(h.finance)
	zh.signIn(h.finance)
	for _, one := range []struct {
		b          *tab
		path, name string
		look       look
	}{
		{en, "/", "overview", look{width: 1120, height: 620}},
		{zh, "/payouts?status=failed", "failed", look{width: 1120, height: 620}},
		{en, "/payouts/" + ids["zhou-ting~frozen"], "payout", look{width: 1120, height: 900}},
		{zh, "/packets/" + evening, "packet", look{width: 1120, height: 900, dark: true}},
	} {
		one.b.put(one.look)
		one.b.open(one.path)
		shot, err := chromedp.Call(one.b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp,
			Quality: new(int64(82))})
		h.must(err)
		h.must(os.MkdirAll(pictures, 0o755))
		h.must(os.WriteFile(filepath.Join(pictures, one.name+".webp"), shot.Data, 0o644))
	}
	if d, err := h.Reports.Payment(t.Context(), ids["zhou-ting~frozen"]); err != nil || d.Status != payout.StatusFailed {
		t.Errorf("the picture of a payout shows none that failed: %s %v", d.Status, err)
	}
}
