package wechat

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"hongbao/internal/payout"
)

// notice is a notification, encrypted with a key.
func notice(t *testing.T, key, event, plain string) []byte {
	t.Helper()
	block, err := aes.NewCipher([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"id": "EV-1", "event_type": event, "resource": map[string]string{
		"algorithm": "AEAD_AES_256_GCM", "nonce": "0123456789ab", "associated_data": "x",
		"ciphertext": base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte("0123456789ab"), []byte(plain), []byte("x")))}})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestNotification: the kinds of event, and the answers that WeChat Pay expects.
func TestNotification(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	a := r.adapter(t, nil)
	own := `"mchid":"` + testMerchant + `",`
	strange := strings.Repeat("s", 32)
	for what, v := range map[string]struct {
		body    []byte
		orderNo string
		status  int
	}{
		"a charge":             {notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{`+own+`"out_trade_no":"c1"}`), "c1", http.StatusOK},
		"a refund":             {notice(t, testAPIKey, "REFUND.CLOSED", `{`+own+`"out_trade_no":"c1","out_refund_no":"r1"}`), "r1", 200},
		"a transfer":           {notice(t, testAPIKey, "MCHTRANSFER.X", `{"mch_id":"1900000109","out_bill_no":"p1"}`), "p1", 200},
		"an unknown event":     {notice(t, testAPIKey, "SECURITY_ECHO.SUCCESS", `{`+own+`"x":1}`), "", http.StatusOK},
		"another merchant":     {notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{"mchid":"1900000110","out_trade_no":"c1"}`), "", 401},
		"no merchant":          {notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{"out_trade_no":"c1"}`), "", http.StatusUnauthorized},
		"another key":          {notice(t, strange, "TRANSACTION.SUCCESS", `{`+own+`"out_trade_no":"c1"}`), "", http.StatusUnauthorized},
		"a nonce of 3":         {[]byte(`{"id":"E","event_type":"X","resource":{"nonce":"abc","algorithm":"AEAD_AES_256_GCM"}}`), "", 200},
		"another algorithm":    {[]byte(`{"id":"E","event_type":"X","resource":{"nonce":"0123456789ab","algorithm":"none"}}`), "", 401},
		"nothing that is JSON": {[]byte(`hello`), "", http.StatusOK},
	} {
		event, orderNo, err := a.VerifyNotification(testKeys().public.Headers(time.Now(), v.body), v.body)
		answer := a.AnswerNotification(err)
		if orderNo != v.orderNo || (event == "") != (v.orderNo == "") || answer.Status != v.status {
			t.Errorf("%s: event %q of %q, answered %d (%v), want %q and %d", what, event, orderNo, answer.Status, err, v.orderNo, v.status)
		}
		if held := errors.Is(err, payout.ErrWrongProvider); held != (what == "another merchant") {
			t.Errorf("%s: of another account: %v", what, held)
		}
		if fail := strings.Contains(string(answer.Body), `"FAIL"`); fail != (v.status != http.StatusOK) {
			t.Errorf("%s: answered with %s", what, answer.Body)
		}
		if err != nil && (strings.Contains(err.Error(), "Signature") || strings.Contains(err.Error(), "ciphertext")) {
			t.Errorf("%s: the error quotes the request: %v", what, err)
		}
	}
	if got := a.AnswerNotification(errors.New("MySQL is down")); got.Status != http.StatusInternalServerError {
		t.Errorf("not stored: answered %d", got.Status)
	}
	if got := a.AnswerNotification(nil); got.Status != http.StatusOK || len(got.Body) != 0 {
		t.Errorf("stored: answered %d %q", got.Status, got.Body)
	}
	// The probe that WeChat Pay signs wrongly on purpose.
	body := notice(t, testAPIKey, "TRANSACTION.SUCCESS", `{`+own+`"out_trade_no":"c1"}`)
	probe := testKeys().public.Headers(time.Now(), body)
	probe.Set("Wechatpay-Signature", "WECHATPAY/SIGNTEST/"+probe.Get("Wechatpay-Signature"))
	if _, _, err := a.VerifyNotification(probe, body); !errors.Is(err, ErrNotification) || errors.Is(err, payout.ErrUnknownNotification) {
		t.Errorf("a probe of the signature: %v", err)
	}
}
