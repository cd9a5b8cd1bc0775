package worker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Reason is why a Temporal server that answers cannot be used.
type Reason string

// The reasons, and how each is detected.
const (
	// x509.UnknownAuthorityError, x509.SystemRootsError
	WhyAuthority   Reason = "the certificate of the Temporal server is not from a trusted authority"
	WhyName        Reason = "the certificate of the Temporal server is for another name"      // x509.HostnameError
	WhyCertificate Reason = "the certificate of the Temporal server is not valid"             // any other tls.CertificateVerificationError
	WhyHandshake   Reason = "the Temporal server refuses the TLS connection"                  // an alert from the server
	WhyNotTLS      Reason = "the Temporal server does not speak TLS"                          // tls.RecordHeaderError
	WhyNotHTTP2    Reason = "the TLS server at the address of Temporal does not speak HTTP/2" // ALPN
	WhyTLS         Reason = "the Temporal server asks for TLS"                                // it answers a handshake
	WhyKey         Reason = "the Temporal server does not accept the API key"                 // gRPC Unauthenticated
	WhyPermission  Reason = "the Temporal server does not permit the request"                 // gRPC PermissionDenied
)

// Refusal is a Temporal server that rejects this process, or that is not trusted. Waiting does
// not end it: a setting, a certificate or a key must change.
type Refusal struct {
	Why Reason
	Err error // the cause; nil if Why says everything
}

func (r *Refusal) Error() string {
	if r.Err == nil {
		return string(r.Why)
	}
	return fmt.Sprintf("%s: %v", r.Why, r.Err)
}

func (r *Refusal) Unwrap() error { return r.Err }

// refusedTimeout bounds the calls of Refused.
const refusedTimeout = 5 * time.Second

// Refused checks once whether the server accepts this process. The error is a *Refusal. It is nil
// also if the server does not answer: Temporal may start later.
func (s Server) Refused(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, refusedTimeout)
	defer cancel()
	_, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err == nil { // a key may be right and not be for this namespace
		_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace})
	}
	if refusal, is := errors.AsType[*Refusal](s.explain(ctx, err)); is {
		return refusal
	}
	return nil
}

// explain turns an error of a call into a *Refusal if it is one. gRPC keeps only the text of a
// failed connection, so a handshake of our own finds the cause.
func (s Server) explain(ctx context.Context, err error) error {
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unauthenticated:
		return &Refusal{WhyKey, err}
	case codes.PermissionDenied:
		return &Refusal{WhyPermission, err}
	case codes.Unavailable:
		if refusal := s.handshake(ctx); refusal != nil {
			return refusal
		}
	}
	return err
}

// handshake connects as gRPC does, and returns why that fails; nil if it succeeds or the server
// does not answer.
func (s Server) handshake(ctx context.Context) *Refusal {
	config, err := s.tlsConfig(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil // it could be read at start: a rotation is under way
	}
	if !s.TLS {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", s.Address)
	if conn != nil {
		defer func() { _ = conn.Close() }()
	}
	switch {
	case !s.TLS:
		return answersTLS(err)
	case err != nil:
		return refusalOf(err)
	case conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != "h2":
		return &Refusal{Why: WhyNotHTTP2}
	}
	return refusalOf(readFirstFrame(ctx, conn))
}

// readFirstFrame waits for the first frame of an HTTP/2 server. With TLS 1.3 a server rejects a
// client certificate only after the handshake.
func readFirstFrame(ctx context.Context, conn net.Conn) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	const preface, settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	if _, err := io.WriteString(conn, preface+settings); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, len(settings)))
	return err
}

// refusalOf returns the fault of a TLS connection by the error's type; nil if there is none or it
// is not about TLS.
func refusalOf(err error) *Refusal {
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return &Refusal{WhyAuthority, err}
	}
	if _, is := errors.AsType[x509.SystemRootsError](err); is {
		return &Refusal{WhyAuthority, err}
	}
	if _, is := errors.AsType[x509.HostnameError](err); is {
		return &Refusal{WhyName, err}
	}
	if _, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return &Refusal{WhyCertificate, err}
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return &Refusal{WhyNotTLS, err}
	}
	if isTLSAlert(err) {
		return &Refusal{WhyHandshake, err}
	}
	return nil
}

// isTLSAlert reports whether the server has sent a TLS alert. crypto/tls does not export the type
// of those and marks them by the operation.
func isTLSAlert(err error) bool {
	op, is := errors.AsType[*net.OpError](err)
	return is && op.Op == "remote error"
}

// answersTLS judges a TLS handshake that was tried with a server configured as plain text: if it
// answers the handshake at all, it speaks TLS.
func answersTLS(err error) *Refusal {
	if refusal := refusalOf(err); err == nil || refusal != nil && refusal.Why != WhyNotTLS {
		return &Refusal{Why: WhyTLS}
	}
	return nil
}

// redactKey removes a key from errors, and so from logs: a gateway may quote the request in its
// rejection.
func redactKey(key string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		err := invoker(ctx, method, req, reply, cc, opts...)
		answer := status.Convert(err)
		if !strings.Contains(answer.Message(), key) {
			return err
		}
		without := answer.Proto() // a copy, with the details that say what it means
		without.Message = strings.ReplaceAll(answer.Message(), key, "[redacted]")
		return status.ErrorProto(without)
	}
}
