package kubelet

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// foreignPlugin is a device plugin of another maker. It registers once, as the earlier plugins
// for DirectX do, and does not know this project's status call.
type foreignPlugin struct {
	pluginapi.DevicePluginServer
	devices []string
	server  *grpc.Server
	stopped chan struct{}
}

func (*foreignPlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (f *foreignPlugin) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	list := &pluginapi.ListAndWatchResponse{}
	for _, id := range f.devices {
		list.Devices = append(list.Devices, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	if err := stream.Send(list); err != nil {
		return err
	}
	select {
	case <-f.stopped:
	case <-stream.Context().Done():
	}
	return nil
}

// startForeignPlugin starts a plugin whose socket has the name that the earlier plugin for
// display devices gives it, and registers it. stop ends it and removes its socket.
func startForeignPlugin(t *testing.T, devices ...string) *foreignPlugin {
	t.Helper()
	name := fmt.Sprintf("wddm-%d.sock", time.Now().UnixMilli())
	listener, err := net.Listen("unix", directory.file(name))
	if err != nil {
		t.Fatal(err)
	}
	f := &foreignPlugin{devices: devices, server: grpc.NewServer(), stopped: make(chan struct{})}
	pluginapi.RegisterDevicePluginServer(f.server, f)
	go func() { _ = f.server.Serve(listener) }()
	t.Cleanup(f.stop)
	if err := register(name, display); err != nil {
		t.Fatalf("the foreign plugin cannot register: %v", err)
	}
	return f
}

func (f *foreignPlugin) stop() {
	select {
	case <-f.stopped:
	default:
		close(f.stopped)
		f.server.Stop()
	}
}

func register(socket, resource string) error {
	dialer := func(_ context.Context, path string) (net.Conn, error) { return net.Dial("unix", path) }
	// These names are deprecated, but every version of grpc in the module files has them.
	connection, err := grpc.Dial("passthrough:///"+directory.file("kubelet.sock"),
		grpc.WithInsecure(), grpc.WithContextDialer(dialer))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version: pluginapi.Version, Endpoint: socket, ResourceName: resource,
	})
	return err
}
