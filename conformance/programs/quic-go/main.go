// An HTTP/3 server of quic-go for `load --http 3` and for studies of lost packets.
//
//	quic-go -listen HOST:PORT -cert FILE -key FILE [-processing 200ms] [-reply BYTES] [-streams N] [-log FILE]
//
// It reads the whole body of a request on any path, waits for the processing time and answers with status 200 and
// BYTES bytes. A request that it received has one line in the log, which is written when its body has been read.
package main

import (
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// answer replies to every request alike.
type answer struct {
	processing time.Duration
	body       []byte
	// requests is nil without a log.
	requests *os.File
}

func (answer answer) ServeHTTP(reply http.ResponseWriter, request *http.Request) {
	length, err := io.Copy(io.Discard, request.Body)
	if answer.requests != nil {
		// One write per line, so that lines of concurrent requests stay whole.
		if _, err := fmt.Fprintf(answer.requests, "request %s %s %d\n", request.Method, request.URL.Path, length); err != nil {
			log.Fatal(err)
		}
	}
	if err != nil {
		return
	}
	time.Sleep(answer.processing)
	reply.Header().Set("Content-Type", "text/plain")
	reply.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
	// The client that left has no use for the rest.
	_, _ = reply.Write(answer.body)
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:4433", "address and UDP port")
	certificate := flag.String("cert", "certificate.pem", "certificate chain, PEM")
	key := flag.String("key", "key.pem", "private key, PEM")
	processing := flag.Duration("processing", 0, "time between the request and its reply")
	size := flag.Int("reply", 1024, "bytes of a reply's body")
	streams := flag.Int64("streams", 100, "concurrent requests on a connection")
	requests := flag.String("log", "", "file for a line for each request")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		return err
	}
	handler := answer{processing: *processing, body: bytes.Repeat([]byte{'x'}, *size)}
	if *requests != "" {
		handler.requests, err = os.OpenFile(*requests, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
	}
	server := http3.Server{
		Addr:       *listen,
		Handler:    handler,
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig: &quic.Config{MaxIncomingStreams: *streams},
	}
	return server.ListenAndServe()
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
