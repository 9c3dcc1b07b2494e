package cluster

import (
	"context"
	"fmt"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of crates/kubernetes/device_plugin/proto/status.proto.
const (
	reportResources   = 1
	reportDocument    = 3
	reportInstance    = 4
	resourceName      = 1
	resourcePhase     = 2
	phaseReady        = 3
	statusServiceName = "io.crates.device_plugin.v1.Status"
)

// fakePlugin answers the status call at a socket, as a plugin that serves this resource and whose
// report is the document. It ends with the test, or when it is stopped.
func fakePlugin(t *testing.T, socket, resource, document string) *grpc.Server {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var status []byte
	status = protowire.AppendTag(status, resourceName, protowire.BytesType)
	status = protowire.AppendString(status, resource)
	status = protowire.AppendTag(status, resourcePhase, protowire.VarintType)
	status = protowire.AppendVarint(status, phaseReady)
	var report []byte
	report = protowire.AppendTag(report, reportResources, protowire.BytesType)
	report = protowire.AppendBytes(report, status)
	report = protowire.AppendTag(report, reportDocument, protowire.BytesType)
	report = protowire.AppendString(report, document)
	report = protowire.AppendTag(report, reportInstance, protowire.Fixed64Type)
	report = protowire.AppendFixed64(report, 1)

	server := grpc.NewServer(grpc.ForceServerCodec(bytesCodec{}))
	get := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var request []byte
		return &report, decode(&request)
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: statusServiceName,
		Methods:     []grpc.MethodDesc{{MethodName: "Get", Handler: get}},
	}, nil)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server
}

// bytesCodec passes messages that are encoded already.
type bytesCodec struct{}

func (bytesCodec) Marshal(message any) ([]byte, error) {
	bytes, isBytes := message.(*[]byte)
	if !isBytes {
		return nil, fmt.Errorf("%T is not encoded", message)
	}
	return *bytes, nil
}

func (bytesCodec) Unmarshal(data []byte, message any) error {
	bytes, isBytes := message.(*[]byte)
	if !isBytes {
		return fmt.Errorf("%T is not encoded", message)
	}
	*bytes = data
	return nil
}

func (bytesCodec) Name() string { return "proto" }
