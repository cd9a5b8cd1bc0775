package wechat

import (
	"cmp"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wechatpay-apiv3/wechatpay-go/utils"

	"hongbao/internal/money"
)

// The methods in which a sender pays, and the members of Config.AppIDs.
const (
	MethodJSAPI  = "wechat_jsapi"  // in WeChat: official account or mini program
	MethodAPP    = "wechat_app"    // in an app of its own
	MethodNative = "wechat_native" // a QR code that WeChat scans
)

// methods are all methods; the first that has an app id is the default.
var methods = []string{MethodJSAPI, MethodAPP, MethodNative}

const (
	// DefaultBaseURL is the production service. A sandbox of API v3 does not exist.
	DefaultBaseURL = "https://api.mch.weixin.qq.com"
	// DefaultTimeout bounds a call, connecting included.
	DefaultTimeout = 5 * time.Second
	// NotificationPath is followed by the provider's name.
	NotificationPath = "/v1/provider-notifications/"

	apiKeyLen      = 32
	maxNotifyURL   = 255
	maxScene       = 36
	maxInfoType    = 15
	maxInfoContent = 32
	maxRemark      = 32
	idlePerHost    = 128

	refundAvailable = "AVAILABLE" // fund of refunds
)

// ErrConfig is wrapped by errors about settings. They name the member, never a secret.
var ErrConfig = errors.New("wechat configuration")

// The placeholders of the contents of ReportInfos.
const (
	greetingPlaceholder = "{greeting}"
	campaignPlaceholder = "{campaign}"
)

// ReportInfo is a fact that the transfer scene requires about every payout. In Content {greeting} stands for the
// greeting of the packet and {campaign} for the name of its campaign.
type ReportInfo struct {
	Type    string `json:"info_type"`
	Content string `json:"info_content"`
}

// Config are the settings of one merchant account at WeChat Pay.
type Config struct {
	// Name of the provider in rows, metrics and paths. Default "wechat".
	Name string `json:"name"`
	// BaseURL is scheme and host. Default DefaultBaseURL.
	BaseURL string `json:"base_url"`
	// MerchantID is the mchid.
	MerchantID string `json:"mchid"`
	// AppIDs are the app ids by method. A method without one is not offered.
	AppIDs map[string]string `json:"app_ids"`
	// PayoutAppID is the app id to which the recipients' openids belong. Default: that of MethodJSAPI.
	PayoutAppID string `json:"payout_app_id"`
	// APIv3Key decrypts notifications and platform certificates: 32 bytes.
	APIv3Key string `json:"api_v3_key"`
	// MerchantKey is the merchant's private key (PEM), and MerchantSerial the serial number of its
	// certificate.
	MerchantKey    string `json:"merchant_key"`
	MerchantSerial string `json:"merchant_serial"`
	// PublicKeyID ("PUB_KEY_ID_...") and PublicKey (PEM) verify answers and encrypt names. Without them
	// platform certificates are downloaded.
	PublicKeyID string `json:"public_key_id"`
	PublicKey   string `json:"public_key"`
	// PlatformCertificates downloads platform certificates besides the public key: needed while an
	// account changes from one to the other.
	PlatformCertificates bool `json:"platform_certificates"`
	// Scene is the transfer scene id, such as "1000"; without it there are no payouts. Perception and
	// ReportInfos are what the scene requires; Style is CONFIRM_PAGE, RED_PACKET or "".
	Scene       string       `json:"scene"`
	Perception  string       `json:"perception"`
	ReportInfos []ReportInfo `json:"report_infos"`
	Style       string       `json:"style"`
	// MaxPayout is the merchant's own limit of one payout. 0: none.
	MaxPayout money.Fen `json:"max_payout"`
	// RefuseCoupons refunds charges in full of which a coupon paid a part. Default: the total counts.
	RefuseCoupons bool `json:"refuse_coupons"`
	// RefundAccount is the fund from which refunds are paid: "" for what is not settled yet, AVAILABLE
	// for the available balance.
	RefundAccount string `json:"refund_account"`
	// Description is what the sender reads for a charge and its refunds, Remark what the recipient reads
	// for a payout. Default "红包". No text of an app's user is sent, except for {greeting} in
	// ReportInfos: the provider could refuse it.
	Description string `json:"description"`
	Remark      string `json:"remark"`
	// NotifyBase is scheme and host (and a path prefix) under which WeChat Pay reaches the API.
	NotifyBase string `json:"notify_base"`
	// Timeout bounds a call. Default DefaultTimeout.
	Timeout time.Duration `json:"timeout"`
	// HTTPClient, if set, is copied and used; redirects are never followed.
	HTTPClient *http.Client `json:"-"`
}

// LogValue shows the settings without the secrets.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", c.Name), slog.String("base_url", c.BaseURL), slog.String("mchid", c.MerchantID),
		slog.Any("app_ids", c.AppIDs), slog.String("merchant_serial", c.MerchantSerial), slog.String("public_key_id", c.PublicKeyID),
		slog.String("scene", c.Scene), slog.String("notify_base", c.NotifyBase), slog.Duration("timeout", c.Timeout))
}

// String shows the settings without the secrets.
func (c Config) String() string { return c.LogValue().String() }

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)
	mchidForm  = regexp.MustCompile(`^[0-9]{8,32}$`)
	appIDForm  = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)
	serialForm = regexp.MustCompile(`^[0-9A-Fa-f]{8,64}$`)
	keyIDForm  = regexp.MustCompile(`^PUB_KEY_ID_[0-9A-Za-z]{1,64}$`)
)

// bad is an error about a member.
func bad(member, want string) error { return fmt.Errorf("%w: %s %s", ErrConfig, member, want) }

// withDefaults fills in what may be left out.
func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "wechat")
	c.BaseURL = strings.TrimRight(cmp.Or(c.BaseURL, DefaultBaseURL), "/")
	c.PayoutAppID = cmp.Or(c.PayoutAppID, c.AppIDs[MethodJSAPI])
	c.Description, c.Remark = cmp.Or(c.Description, "红包"), cmp.Or(c.Remark, "红包")
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.NotifyBase = strings.TrimRight(c.NotifyBase, "/")
	return c
}

// check checks everything but the keys.
func (c Config) check() error {
	for _, m := range slices.Sorted(maps.Keys(c.AppIDs)) {
		if !slices.Contains(methods, m) || !appIDForm.MatchString(c.AppIDs[m]) {
			return bad("app_ids", "has wechat_jsapi, wechat_app and wechat_native, each an app id")
		}
	}
	switch {
	case !nameForm.MatchString(c.Name):
		return bad("name", "is 1 to 32 of a-z, 0-9, - and _")
	case !isBase(c.BaseURL, false):
		return bad("base_url", "is https://host; http only for a loopback address")
	case !mchidForm.MatchString(c.MerchantID):
		return bad("mchid", "is the merchant id, 8 to 32 digits")
	case len(c.AppIDs) == 0 && c.Scene == "":
		return bad("app_ids", "is needed for charges, scene for payouts; both are missing")
	case c.Scene != "" && !appIDForm.MatchString(c.PayoutAppID):
		return bad("payout_app_id", "is the app id of the recipients' openids")
	case len(c.APIv3Key) != apiKeyLen:
		return bad("api_v3_key", "is exactly 32 bytes")
	case !serialForm.MatchString(c.MerchantSerial):
		return bad("merchant_serial", "is the hexadecimal serial number of the merchant's certificate")
	case (c.PublicKeyID == "") != (c.PublicKey == ""):
		return bad("public_key_id", "and public_key belong together")
	case c.PublicKeyID != "" && !keyIDForm.MatchString(c.PublicKeyID):
		return bad("public_key_id", "begins with PUB_KEY_ID_")
	case !isBase(c.NotifyBase, true):
		return bad("notify_base", "is https://host and perhaps a path, without a query; http only for a loopback address")
	case len(c.notifyURL()) > maxNotifyURL:
		return bad("notify_base", "makes a URL of more than 255 bytes")
	case c.Timeout < 0:
		return bad("timeout", "is negative")
	case c.MaxPayout.Check() != nil:
		return bad("max_payout", "is out of range")
	}
	return c.checkScene()
}

func (c Config) checkScene() error {
	if c.Style != "" && c.Style != "CONFIRM_PAGE" && c.Style != "RED_PACKET" {
		return bad("style", "is CONFIRM_PAGE or RED_PACKET")
	}
	if len(c.Scene) > maxScene {
		return bad("scene", "is at most 36 bytes")
	}
	if c.Scene != "" && len(c.ReportInfos) == 0 {
		return bad("report_infos", "is needed: what the transfer scene requires")
	}
	for _, info := range c.ReportInfos {
		if !within(info.Type, maxInfoType) || !within(info.Content, maxInfoContent) {
			return bad("report_infos", "has info_type of 1 to 15 and info_content of 1 to 32 characters")
		}
		if strings.ContainsAny(fillContent(info.Content, "", ""), "{}") {
			return bad("report_infos", "has no other placeholder in info_content than {greeting} and {campaign}")
		}
	}
	if c.RefundAccount != "" && c.RefundAccount != refundAvailable {
		return bad("refund_account", "is empty or "+refundAvailable)
	}
	if !within(c.Remark, maxRemark) {
		return bad("remark", "is at most 32 characters")
	}
	return nil
}

func within(text string, limit int) bool {
	n := utf8.RuneCountInString(text)
	return n >= 1 && n <= limit && utf8.ValidString(text)
}

// notifyURL is where notifications go to.
func (c Config) notifyURL() string { return c.NotifyBase + NotificationPath + c.Name }

// isBase reports whether text is an https URL without query; loopback may be http.
func isBase(text string, path bool) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil || u.Path != "" && !path {
		return false
	}
	if u.Scheme == "http" {
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return u.Scheme == "https"
}

// keys reads the keys.
func (c Config) keys() (own *rsa.PrivateKey, theirs *rsa.PublicKey, err error) {
	// The causes may quote a key.
	if own, err = utils.LoadPrivateKey(c.MerchantKey); err != nil {
		return nil, nil, bad("merchant_key", "is an RSA private key in PEM (PKCS #8)")
	}
	if c.PublicKey == "" {
		return own, nil, nil
	}
	if theirs, err = utils.LoadPublicKey(c.PublicKey); err != nil {
		return nil, nil, bad("public_key", "is the RSA public key of WeChat Pay in PEM")
	}
	return own, theirs, nil
}
