package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// nodeFolder is where the processes of a node keep their files.
func nodeFolder(o options) string { return filepath.Join(o.folder, "nodes", o.node) }

// runtimeSocket is where the container runtime of a node listens.
func runtimeSocket(o options) string { return filepath.Join(nodeFolder(o), "runtime.sock") }

// containerRuntime is Kubernetes' fake runtime, and records what it is asked to create.
type containerRuntime struct {
	*fake.RemoteRuntime
	folder string
}

// runRuntime runs the container runtime of a node.
func runRuntime(ctx context.Context, o options) error {
	r := containerRuntime{fake.NewFakeRemoteRuntime(), filepath.Join(nodeFolder(o), "containers")}
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	// A kubelet refuses images without size that it does not pull itself.
	r.ImageService.SetFakeImageSize(1)
	r.RuntimeService.FakeStatus = &v1.RuntimeStatus{Conditions: []*v1.RuntimeCondition{
		{Type: v1.RuntimeReady, Status: true},
		{Type: v1.NetworkReady, Status: true},
	}}
	_ = os.Remove(runtimeSocket(o))
	listener, err := net.Listen("unix", runtimeSocket(o))
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1.RegisterRuntimeServiceServer(server, r)
	v1.RegisterImageServiceServer(server, r)
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(listener)
}

// CreateContainer writes the configuration of the container to NAMESPACE_POD_CONTAINER.json. It
// also keeps the log path, which the fake forgets: see isolate.
func (r containerRuntime) CreateContainer(ctx context.Context, request *v1.CreateContainerRequest) (*v1.CreateContainerResponse, error) {
	response, err := r.RemoteRuntime.CreateContainer(ctx, request)
	if err != nil {
		return nil, err
	}
	service := r.RuntimeService
	service.Lock()
	log := filepath.Join(request.GetSandboxConfig().GetLogDirectory(), request.GetConfig().GetLogPath())
	service.Containers[response.GetContainerId()].LogPath = log
	service.Unlock()
	text, err := protojson.Marshal(request.GetConfig())
	if err != nil {
		return nil, err
	}
	pod := request.GetSandboxConfig().GetMetadata()
	name := fmt.Sprintf("%s_%s_%s.json", pod.GetNamespace(), pod.GetName(), request.GetConfig().GetMetadata().GetName())
	return response, replaceFile(filepath.Join(r.folder, name), text)
}

// replaceFile writes a file that readers see complete or not at all.
func replaceFile(path string, text []byte) error {
	partial := path + ".partial"
	if err := os.WriteFile(partial, text, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, path)
}
