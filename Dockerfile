# The one binary of hongbao, alone in an image: no shell, no package manager, and
# nothing that has to be patched but the binary itself. docker-compose.yml says
# how its commands are run.

FROM golang:1.26.5-alpine3.23 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=docker
# Static (no cgo), without the folders of the build; there is no history in the
# build context to take a version from, so it comes as an argument.
ENV GOCACHE=/cache
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/cache \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/hongbao ./cmd/hongbao
# A named volume takes its first owner and mode from the folder it is mounted on.
RUN mkdir -m 0700 /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/hongbao /hongbao
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENTRYPOINT ["/hongbao"]
