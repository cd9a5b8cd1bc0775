package wechat

import (
	"context"
	"crypto/rsa"
	"fmt"
	"testing"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth/verifiers"
	"github.com/wechatpay-apiv3/wechatpay-go/core/consts"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"
)

// The public half of the test key that Tencent publishes with its examples, and the key of a real
// answer. Sources: pay.weixin.qq.com/doc/v3/merchant/4012365336 (request), 4012365341 (mini program),
// wechatpay-apiv3/wechatpay-skills 签名与验签规则.md (results).
const (
	vectorMerchantKey = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAptpm+qvIDCh/9wjU26SQ
CK26ogYkBhDrYxnAaw2JbbBsp1oDbHKk+1r381NeBUG2HEFAuU+Fr72u5ot3yKdz
oF/FajAzQNKnm569/D3upKoi8mYBaST15Uig8j8qoUW1U217LL0jEHlSnHV3lcaD
TXqDpTRR4Bfz9IqOgJgFZ8/oTfEomSrjrLYef81Eyxr7ZIMQXEKKEK7V4UXKS0+/
fDsiG/cXidhzt8UbTL9vqXqxM2+IDImyO+FAc/tkBG55LmzxPto1Nq0WbnZzRM/w
Tzrd0I/8NlevxtFbphg4evlHjFNI7+GrqR87ViEwuAJJ9Je5QQjct5YJfFRWiZ5C
MQIDAQAB
-----END PUBLIC KEY-----`
	vectorPlatformKey = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwXNI6sdlknHBnK8Fu2U6
Cwor9qY747jP8KAfeBMeveEt1TqaHkLfaSD07trZLhGpfs8/AHqjhgSMO1O10YQW
OrrJ4hjIWPKqxbgrYMkBQc+mwdiWp4W3ByCqxBRagCveCXRWCmuJYovl9H/bsDI0
iGbpVtEOghJtfciisYSgxcLufUDTRkvwxjIBK1pCRjk33jJ5YTBWTHMRtMAOcFLN
F6hdEYdX8SPsgHHeLZ5Lv2T/686w1xtgCHef/sd4uSfWmyzsalQdHG/e4IyYmrhx
+O3VBoNDzE3nx23bFeV/RVNCG7cV6VhmYokJNHa/erIPkEmEFID6A5wQOXuxUkmJ
WwIDAQAB
-----END PUBLIC KEY-----`
)

// TestPublishedVectors: the texts that are signed are those of Tencent's examples.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	const app, at, nonce, prepay = "wx2421b1c4370ec43b", "1554208460", "593BEC0C930BF1AFEB40B4A08C8FB242",
		"wx201410272009395522657a690389285100"
	const order = `{"appid":"wxd678efh567hg6787","mchid":"1900007291","description":"Image形象店-深圳腾大-QQ公仔",` +
		`"out_trade_no":"1217752501201407033233368018","notify_url":"https://www.weixin.qq.com/wxpay/pay.php",` +
		`"amount":{"total":100,"currency":"CNY"},"payer":{"openid":"oUpF8uMuAJO_M2pxb1Q9zNjWeS6o"}}`
	for name, v := range map[string]struct{ key, text, signature string }{
		"a request": {vectorMerchantKey, fmt.Sprintf(consts.SignatureMessageFormat, "POST", pathPrepay+"jsapi", 1554208460, nonce, order),
			"jnks4dlrPw3ZX+ozVvSK39oa0t7OMBsg83BHAwd8BRdUFiVaQNTLTvci+wURgP1OQBbKYhFGvt7iqYpDSTQkp7Uq1sltaQKyncCyrA1g88m5bs" +
				"KERQfPyT0ahSwKTYJ1CAn9QiJuSJRq1QsQs07eehbU/k9BCS51jTyc1Jpsi2H77HF9f/BnjXAOP3/sPObg6V5Ee4EzwLox684hhuMuIwHo7D8K" +
				"Fk3LIHOKDcNI4It1aCXydFWNpNK+SG86VUDe5kwoDpw4Ulqfu9z8OFDGbDs9TCxEv8iqQzbpxOlEVoOe2kalSYM5kApQb3nZcxdUtoE0liJGW3" +
				"RGUNE0t4v01A=="},
		"the parameters of JSAPI": {vectorMerchantKey, clientText(app, at, nonce, "prepay_id="+prepay),
			"mI35pfNEQV6777ke/1T+LJLQDNTm7yeoUJH+j/adPGhmCCi0PbgkvYQTRcXH0uibcLVtvFLdGLpmoYO9FV6lBBsTAjuhh5YOvQi0e2g3e0yyti" +
				"tiNET9FEuqM0pjnKfRW4K6LIZDdbWJv9KhZUx3DrJa5TL7OJ7VdADVivxVySIlPVKjGwuCXzuXSJes0UcILgWQUMyha5/3nYofuHtS7r+KYyMu" +
				"xD+oJ9VM1Qdxk4UIG59CP5Y3wtYIFybyF3bdu1caHTRRX+DLyMXyYA/IrTmiW01c4RPjpHBX5Dk1sZyY1zVsWNsvMHr2e1NTWtBxKJ+qk5N61J" +
				"7caYoepHFaxw=="},
		"the parameters of an app": {vectorMerchantKey, clientText(app, at, nonce, prepay),
			"gXx9KhTP6IooKV1SuG3OCGlBIgZbKtubCZvnau6khw1iffvNT28IzLbKmztq2xA/RCNbZa1XOsoiuVmAEeTZQicWfhv4P+O4oBRIrx0X9f3cnW" +
				"FkMBU9alTWs0nyQ1N9fcILOTe0f4kxOhVh+/Xhn5hOiUK7Sz3XA1mcpa3R2NCWf/e+0ow/RDf15iTymOHgDrEkT/gedg/3E0iXfDX3mFicSZhr" +
				"HESZDOTXcl9RzELREBUFznd/o2NQM99WcL86m23HY0cTy+QGWU4QDmNrbQ9ihmLW71qPb0Cx/d7EQvw/Kyx0A6s64ZQp3hHdcmiRcLnjVXrKCk" +
				"7LShaCK+lS3Q=="},
		"an answer": {vectorPlatformKey, "1722850421\nd824f2e086d3c1df967785d13fcd22ef\n" +
			"{\"code_url\":\"weixin://wxpay/bizpayurl?pr=JyC91EIz1\"}\n",
			"mfI1CPqvBrgcXfgXMFjdNIhBf27ACE2YyeWsWV9ZI7T7RU0vHvbQpu9Z32ogzc+k8ZC5n3kz7h70eWKjgqNdKQF0eRp8mVKlmfzMLBVHbssB9j" +
				"EZEDXThOX1XFqX7s7ymia1hoHQxQagPGzkdWxtlZPZ4ZPvr1RiqkgAu6Is8MZgXXrRoBKqjmSdrP1N7uxzJ/cjfSiis9FiLjuADoqmQ1P7p2N8" +
				"76YPAol7Rn0+GswwAwxldbdLrmVSjfytfSBJFqTMHn4itojgxSWWN1byuckQt8hSTEv/Lg97QoeGniYP17T80pJeQyL3b+295FPHSO2AtvCgyI" +
				"bKMZ0BALilAA=="},
	} {
		key, err := utils.LoadPublicKey(v.key)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifyVector(t.Context(), *key, v.text, v.signature); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if verifyVector(t.Context(), *key, v.text+" ", v.signature) == nil {
			t.Errorf("%s: another text has the same signature", name)
		}
	}
}

func verifyVector(ctx context.Context, key rsa.PublicKey, text, signature string) error {
	return verifiers.NewSHA256WithRSAPubkeyVerifier("key", key).Verify(ctx, "key", text, signature)
}
