package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/swaggest/swgui/v5emb"

	"hongbao/api/rest"
	"hongbao/wire"
)

const (
	docsPath     = "/docs"
	documentPath = "/openapi.json"
)

// docsPage is Swagger UI, embedded, without external hosts. The page never changes, so the
// content security policy permits its inline parts by hash.
type docsPage struct {
	handler http.Handler
	page    []byte
	policy  string
}

// inline matches the inline scripts and styles of the page.
var inline = regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`)

func newDocsPage() (*docsPage, error) {
	h := v5emb.New("hongbao", documentPath, docsPath)
	rec := &recorder{header: http.Header{}}
	req, err := http.NewRequest(http.MethodGet, docsPath, nil) //nolint:noctx // handled in memory
	if err != nil {
		return nil, fmt.Errorf("docs page: %w", err)
	}
	h.ServeHTTP(rec, req)
	page := bytes.TrimSpace(rec.body.Bytes())
	hashes := map[string][]string{}
	for _, m := range inline.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(m[2])
		hashes[string(m[1])] = append(hashes[string(m[1])], "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	if len(hashes["script"]) == 0 {
		return nil, errors.New("docs page: no script found")
	}
	policy := strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' " + strings.Join(hashes["script"], " "),
		"style-src 'self' " + strings.Join(hashes["style"], " "),
		"style-src-attr 'unsafe-inline'", // Swagger UI sets style attributes
		"img-src 'self' data:", "font-src 'self' data:", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
	return &docsPage{handler: h, page: page, policy: policy}, nil
}

// recorder buffers the output of a handler.
type recorder struct {
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// Document returns the OpenAPI 3.1 document as served at /openapi.json, generated from
// the table of routes.
func Document(version string) ([]byte, error) {
	return rest.RenderDocument((&Server{}).routes(), version)
}

func getDocument(r *request) (rest.Answer, error) {
	raw, err := r.server.doc()
	if err != nil {
		return rest.Answer{}, err
	}
	return rest.Answer{Status: http.StatusOK, Raw: raw}, nil
}

func getDocs(r *request) (rest.Answer, error) {
	d := r.server.docs
	return rest.Answer{Status: http.StatusOK, Raw: d.page, Kind: "text/html; charset=utf-8", Header: map[string]string{
		fiber.HeaderContentSecurityPolicy: d.policy,
		fiber.HeaderXContentTypeOptions:   "nosniff",
		fiber.HeaderReferrerPolicy:        "no-referrer",
	}}, nil
}

func getDocsAsset(r *request) (rest.Answer, error) {
	if err := adaptor.HTTPHandler(r.server.docs.handler)(r.C); err != nil {
		return rest.Answer{}, err
	}
	switch r.C.Response().StatusCode() {
	case http.StatusOK, http.StatusNotModified:
		r.C.Set(fiber.HeaderXContentTypeOptions, "nosniff")
		return rest.Answer{Written: true}, nil
	}
	return rest.Answer{}, rest.Refuse(wire.CodeNotFound)
}
