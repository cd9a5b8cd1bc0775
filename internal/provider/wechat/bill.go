package wechat

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // the vendor's hash of bills
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"hongbao/internal/payout"
)

const (
	// billLines is the number of lines of a page: a transfer among them costs a query.
	billLines = 200
	// billTimeout bounds the download of a bill, billBytes its size, packed and unpacked.
	billTimeout = 2 * time.Minute
	billBytes   = 512 << 20
	// billsMade is when all bills of a day should exist, after its end; billsLate when each bill that does not exist
	// counts as one without movements.
	billsMade = 10 * time.Hour
	billsLate = billsMade + 24*time.Hour
	// downloadPath is where every bill is fetched.
	downloadPath = "/v3/billdownload/file"
	// The bills of a day. Charges and accepted refunds are in the trade bill, movements of a fund in its flow.
	tradeBill     = "tradebill?bill_type=ALL"
	basicFlow     = "fundflowbill?account_type=" + string(FundBasic)
	operationFlow = "fundflowbill?account_type=" + string(FundOperation)
	feesFlow      = "fundflowbill?account_type=" + string(FundFees)
)

var (
	errNoBill   = errors.New("there is no such bill")
	errBillHash = errors.New("the file has another hash than its bill")
	errBill     = errors.New("the bill is not well formed")
)

// billCache is the last day that was read: pages are cut from it.
type billCache struct {
	mu    sync.Mutex
	day   payout.Day
	lines []billLine
}

// billLine is a line of the statement. A transfer's line still has to be resolved: the fund flow lists
// money when it is locked for a recipient, who may never confirm.
type billLine struct {
	payout.StatementLine
	transferID string // "": the line is complete
}

// Statement returns a page of the movements of a day, from the trade bill (charges) and the fund flows
// (refunds, transfers, fees, top-ups, withdrawals): of a transfer it is listed only if a query says that it succeeded. A day that
// has not ended has no lines. Bills are made at 10:00 of the next day; until then, and while a file is
// damaged, it returns an error. Errors: payout.ErrNotPublished; others wrap ErrAnswer. The call may be repeated.
func (a *Adapter) Statement(ctx context.Context, day payout.Day, after string) (payout.StatementPage, error) {
	fail := func(err error) (payout.StatementPage, error) {
		return payout.StatementPage{}, fmt.Errorf("statement of %s: %w: %w", day, ErrAnswer, err)
	}
	if day >= payout.DayOf(a.now(), china) {
		return payout.StatementPage{}, nil
	}
	from := 0
	if after != "" {
		var err error
		if from, err = strconv.Atoi(after); err != nil || from < 0 {
			return fail(fmt.Errorf("position %q: %w", after, errBill))
		}
	}
	lines, err := a.billsOf(ctx, day)
	if errors.Is(err, payout.ErrNotPublished) {
		return payout.StatementPage{}, fmt.Errorf("statement of %s: %w", day, err)
	}
	if err != nil {
		return fail(err)
	}
	if from > len(lines) {
		return fail(fmt.Errorf("position %d of %d lines: %w", from, len(lines), errBill))
	}
	var page payout.StatementPage
	part := lines[from:min(from+billLines, len(lines))]
	for _, l := range part {
		done, ok, err := a.resolve(ctx, l)
		if err != nil {
			return fail(err)
		}
		if ok {
			page.Lines = append(page.Lines, done)
		}
	}
	if end := from + len(part); end < len(lines) {
		page.Next = strconv.Itoa(end)
	}
	return page, nil
}

// resolve queries what became of a transfer. ok is false when it did not succeed: then its money came
// back, and nothing moved.
func (a *Adapter) resolve(ctx context.Context, l billLine) (_ payout.StatementLine, ok bool, err error) {
	if l.transferID == "" {
		return l.StatementLine, true, nil
	}
	path := pathBillID + url.PathEscape(l.transferID)
	if _, err := payout.Parse(l.OrderNo); err == nil {
		path = pathBill + url.PathEscape(l.OrderNo)
	}
	var v billAnswer
	if err := a.get(ctx, request{method: http.MethodGet, path: path}, &v); err != nil {
		return l.StatementLine, false, fmt.Errorf("transfer %s: %w", l.transferID, err)
	}
	kind, known := billStates[v.State]
	if !known || v.OutBillNo == "" || v.MerchantID != a.cfg.MerchantID || v.Amount != l.Amount {
		return l.StatementLine, false, fmt.Errorf("transfer %s: state %q, %d fen: %w", l.transferID, v.State, v.Amount, errBill)
	}
	l.OrderNo, l.Account = v.OutBillNo, v.OpenID
	return l.StatementLine, kind == payout.ObsSucceeded, nil
}

// billsOf reads all bills of a day, or returns those that were read last.
func (a *Adapter) billsOf(ctx context.Context, day payout.Day) ([]billLine, error) {
	a.bills.mu.Lock()
	defer a.bills.mu.Unlock()
	if a.bills.day == day {
		return a.bills.lines, nil
	}
	_, end := day.Span(china)
	if a.now().Before(end.Add(billsMade)) {
		return nil, fmt.Errorf("%w: bills are made at 10:00 of the next day", payout.ErrNotPublished)
	}
	date := url.Values{"bill_date": {string(day)}, "tar_type": {"GZIP"}}
	files := map[string][]byte{}
	for _, bill := range []string{tradeBill, basicFlow, operationFlow, feesFlow} {
		file, err := a.bill(ctx, "/v3/bill/"+bill+"&"+date.Encode())
		if errors.Is(err, errNoBill) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", bill, err)
		}
		files[bill] = file
	}
	if a.now().Before(end.Add(billsLate)) {
		bill, err := awaited(files, a.cfg.Scene != "")
		if err != nil {
			return nil, err
		}
		if bill != "" {
			return nil, fmt.Errorf("%w: there is no %s, or not yet", payout.ErrNotPublished, bill)
		}
	}
	lines, err := readBills(files, day)
	if err != nil {
		return nil, err
	}
	a.bills.day, a.bills.lines = day, lines
	return lines, nil
}

// awaited returns a bill that does not exist although something may have moved in it; "": the bills are complete. pays
// says that the account makes transfers.
//
// WeChat Pay answers STATEMENT_CREATING while it makes a bill, and NO_STATEMENT_EXIST when nothing moved
// (pay.weixin.qq.com/doc/v3/merchant/4013071254). The latter alone is not believed where another bill speaks against it:
// charges and refunds are both in the trade bill and in the flow of the basic account. Nothing else lists transfers, so
// a day without any is not believed of an account that makes them. Nor is a day without any bill.
func awaited(files map[string][]byte, pays bool) (bill string, err error) {
	_, traded := files[tradeBill]
	basic, flowed := files[basicFlow]
	_, paid := files[operationFlow]
	switch {
	case len(files) == 0:
		return "bill", nil
	case traded && !flowed:
		return basicFlow, nil
	case pays && !paid:
		return operationFlow, nil
	case traded || !flowed:
		return "", nil
	}
	if traded, err = listsTrades(basic); traded {
		return tradeBill, err
	}
	return "", err
}

// bill applies for a bill, downloads it and compares its hash: the download carries no signature.
func (a *Adapter) bill(ctx context.Context, path string) ([]byte, error) {
	var v struct {
		HashType    string `json:"hash_type"`
		HashValue   string `json:"hash_value"`
		DownloadURL string `json:"download_url"`
	}
	err := a.get(ctx, request{method: http.MethodGet, path: path}, &v)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		switch refused.code {
		case "NO_STATEMENT_EXIST":
			return nil, errNoBill
		case "STATEMENT_CREATING":
			return nil, fmt.Errorf("%w: it is being made", payout.ErrNotPublished)
		}
	}
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(v.DownloadURL)
	if err != nil || at.Path != downloadPath || v.HashType != "SHA1" {
		return nil, fmt.Errorf("%w: hash %q, or an address that is not %s", errBill, v.HashType, downloadPath)
	}
	ctx, cancel := context.WithTimeout(ctx, billTimeout)
	defer cancel()
	// Only the path is used: our signature goes to no other host.
	res := a.exchange(ctx, request{method: http.MethodGet, path: at.RequestURI()}, billBytes)
	if res.err != nil {
		return nil, fmt.Errorf("download: %s: %w", res.code, res.err)
	}
	if res.status != http.StatusOK {
		return nil, fmt.Errorf("download: %w: status %d", errBill, res.status)
	}
	return unpack(res.body, v.HashValue)
}

// unpack unpacks a file and compares the hash of what was packed.
func unpack(packed []byte, hash string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBill, err)
	}
	file, err := io.ReadAll(io.LimitReader(z, billBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBill, err)
	}
	if len(file) > billBytes {
		return nil, errTooLong
	}
	sum := sha1.Sum(file) //nolint:gosec // the vendor's choice
	if !strings.EqualFold(hex.EncodeToString(sum[:]), hash) {
		return nil, errBillHash
	}
	return file, nil
}
