// A gRPC server of grpc-go with the health service and a log of its calls, for `load --http 2`.
//
//	streams-grpc-go ADDRESS LOG STREAMS AGE
//
// It permits STREAMS concurrent streams on a connection and sends GOAWAY to connections of the given AGE, such as 500ms.
// Each call that it received has one line in LOG.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
)

// callLog writes a line when the header fields of a call have been read.
type callLog struct{ file *os.File }

func (callLog) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (calls callLog) HandleRPC(_ context.Context, event stats.RPCStats) {
	if header, isHeader := event.(*stats.InHeader); isHeader {
		// One write per line, so that lines of concurrent calls stay whole.
		if _, err := fmt.Fprintf(calls.file, "call %s\n", header.FullMethod); err != nil {
			log.Fatal(err)
		}
	}
}

func (callLog) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (callLog) HandleConn(context.Context, stats.ConnStats) {}

func run(address, path, streams, age string) error {
	limit, err := strconv.ParseUint(streams, 10, 32)
	if err != nil {
		return err
	}
	oldest, err := time.ParseDuration(age)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := grpc.NewServer(
		grpc.MaxConcurrentStreams(uint32(limit)),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: oldest}),
		grpc.StatsHandler(callLog{file}),
	)
	healthgrpc.RegisterHealthServer(server, health.NewServer())
	return server.Serve(listener)
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: streams-grpc-go ADDRESS LOG STREAMS AGE")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		log.Fatal(err)
	}
}
