package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// serviceName is the service of containerd.
	serviceName = "windows-node-containerd"
	// containerdAddress is where containerd listens, beside one that may run already. The kubelet and
	// crictl call it runtimeEndpoint.
	containerdAddress = `\\.\pipe\windows-node-containerd`
	runtimeEndpoint   = "npipe:////./pipe/windows-node-containerd"
	// noSuchService is in what sc.exe prints in every language: ERROR_SERVICE_DOES_NOT_EXIST (winerror.h).
	noSuchService = " 1060:"
)

// images are the container images for the builds of Windows on which they run with process
// isolation. Their tags get the updates of every month, without which Windows may refuse them.
var images = map[int]string{20348: "ltsc2022", server2025: "ltsc2025"}

// server2025 is the first build that provides the driver's files to containers itself.
const server2025 = 26100

// node is the host while it is a Kubernetes node.
type node struct {
	machine
	platform
	// programs has the plugin and directx-visible.
	programs string
	// pluginImage is the archive of the plugin's image, or empty.
	pluginImage string
	// visibleImage is the archive of the image of directx-visible, or empty.
	visibleImage string
	// image is what containers run. If it is empty, the build of Windows decides.
	image string
	// live means that the node has a GPU: the plugin finds devices itself.
	live     bool
	archives []archive
	ports    ports
	// endpoint is where the kubelet and crictl find the container runtime.
	endpoint string
	// natInterface is the host's end of the network of containers.
	natInterface string

	cleanups []cleanup
	kubelet  *daemon
	plugin   *daemon
	// wanted are the predictions for a pod, one for each device that it may get.
	wanted []containerOptions
	// podName and devicePod are the pod with a device, and found is what its container found.
	podName   string
	devicePod podStatus
	found     checks
}

// platform is what Windows reports about the host.
type platform struct {
	// os is `windows`, as Kubernetes names it.
	os       string
	elevated bool
	build    int
	// drive is the system drive, such as `C:\`.
	drive string
}

// ports are those of the kubelet on loopback.
type ports struct{ server, readOnly int }

// cleanup undoes something that this program did.
type cleanup struct {
	what string
	undo func(context.Context) error
}

// later undoes something when the program ends.
func (n *node) later(what string, undo func(context.Context) error) {
	n.cleanups = append(n.cleanups, cleanup{what, undo})
}

// startDaemon starts a program, which is killed at the end unless it is before.
func (n *node) startDaemon(name string, arguments ...string) (*daemon, error) {
	started, err := n.start(name, arguments...)
	if err == nil {
		n.later(name, func(context.Context) error {
			started.kill()
			return nil
		})
	}
	return started, err
}

// clean undoes everything, the last first, and returns what was left.
func (n *node) clean(ctx context.Context) error {
	var left []error
	for i := len(n.cleanups) - 1; i >= 0; i-- {
		if err := n.cleanups[i].undo(ctx); err != nil {
			left = append(left, fmt.Errorf("%s: %w", n.cleanups[i].what, err))
		}
	}
	n.cleanups = nil
	if len(left) > 0 {
		return &problem{"something was left behind", "remove what the log names", errors.Join(left...)}
	}
	return nil
}

// checkHost refuses a host on which this program could break something, and creates the folder.
func (n *node) checkHost(ctx context.Context) ([]string, error) {
	if !n.elevated {
		return nil, &problem{"not elevated", "run this program as administrator", nil}
	}
	if err := n.chooseImage(); err != nil {
		return nil, err
	}
	if err := n.mustHaveService(ctx, "vmcompute", true, "Windows has no feature Containers", "run `Install-WindowsFeature Containers` and restart Windows"); err != nil {
		return nil, err
	}
	if err := n.mustHaveNoKubelet(ctx); err != nil {
		return nil, err
	}
	if err := n.mustHavePrograms(); err != nil {
		return nil, err
	}
	const leftovers = "remove the folder and the service " + serviceName + " of an earlier run"
	if err := n.mustHaveService(ctx, serviceName, false, "an earlier run was not cleaned up", leftovers); err != nil {
		return nil, err
	}
	if err := os.Mkdir(n.folder, 0o755); err != nil {
		return nil, &problem{"an earlier run was not cleaned up", leftovers, err}
	}
	n.later("folder "+n.folder, func(context.Context) error { return removeAll(n.folder) })
	// What the kubelet, the plugin and hcsshim create outside of it.
	for _, path := range []string{
		n.onDrive("var", "lib", "kubelet"), n.onDrive("var", "log", "containers"), n.onDrive("ProgramData", "directx-device-plugin"), n.onDrive("etc"), n.onDrive("hpc"),
	} {
		if created := firstMissing(path); created != "" {
			n.later("folder "+created, func(context.Context) error { return removeAll(created) })
		}
	}
	return []string{fmt.Sprintf("build=%d", n.build)}, nil
}

// chooseImage chooses the image of the pods for the build of Windows.
func (n *node) chooseImage() error {
	tag := images[n.build]
	switch {
	case n.image != "":
	case tag == "":
		return &problem{"no image is known for this build of Windows", "name one with --image", fmt.Errorf("build %d", n.build)}
	case n.live:
		// nanoserver has no Direct3D.
		n.image = "mcr.microsoft.com/windows/server:" + tag
	default:
		n.image = "mcr.microsoft.com/windows/nanoserver:" + tag
	}
	return nil
}

// mustHaveNoKubelet refuses a Kubernetes node.
func (n *node) mustHaveNoKubelet(ctx context.Context) error {
	const hint = "use a machine that is no Kubernetes node"
	if err := n.mustHaveService(ctx, "kubelet", false, "a kubelet is installed", hint); err != nil {
		return err
	}
	processes, err := n.run(ctx, "tasklist", "/fi", "imagename eq kubelet.exe", "/fo", "csv", "/nh")
	if err != nil {
		return err
	}
	if strings.Contains(processes, "kubelet.exe") {
		return &problem{"a kubelet runs", hint, nil}
	}
	if _, err := os.Lstat(n.onDrive("var", "lib", "kubelet")); !errors.Is(err, fs.ErrNotExist) {
		return &problem{"a kubelet has run here", hint, err}
	}
	for _, port := range []int{n.ports.server, n.ports.readOnly} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return &problem{"a port of the kubelet is in use", hint, err}
		}
		listener.Close()
	}
	return nil
}

func (n *node) mustHavePrograms() error {
	for name, file := range map[string]string{
		"plugin": "directx-device-plugin.exe", "launcher": "directx-visible.exe", "filter": "directx-visible-filter.dll",
	} {
		if n.paths[name] == "" {
			n.paths[name] = filepath.Join(n.programs, file)
		}
		if _, err := os.Stat(n.paths[name]); err != nil {
			return &problem{file + " is missing", "name the folder of the programs with --programs", err}
		}
	}
	return nil
}

// mustHaveService fails with a problem if a service exists or not.
func (n *node) mustHaveService(ctx context.Context, name string, wanted bool, what, hint string) error {
	state, err := n.run(ctx, "sc", "query", name)
	missing := err != nil && strings.Contains(state, noSuchService)
	switch {
	case err != nil && !missing:
		return err
	case missing == wanted:
		return &problem{what, hint, nil}
	default:
		return nil
	}
}

func (n *node) onDrive(names ...string) string {
	return filepath.Join(append([]string{n.drive}, names...)...)
}

// firstMissing returns the first folder of a path that does not exist, or nothing.
func firstMissing(path string) string {
	missing := ""
	for {
		if _, err := os.Lstat(path); err == nil || filepath.Dir(path) == path {
			return missing
		}
		missing, path = path, filepath.Dir(path)
	}
}

// removeAll removes a folder. Processes that have just ended may hold files for a moment.
func removeAll(folder string) error {
	var err error
	for range 20 {
		if err = os.RemoveAll(folder); err == nil {
			return nil
		}
		time.Sleep(pollPeriod)
	}
	return err
}

// network finds the network of containers, which Docker creates, and describes it for CNI. On hosted
// runners Docker sometimes does not run after the start of Windows.
func (n *node) network(ctx context.Context) ([]string, error) {
	address, err := natAddress(n.natInterface)
	if err != nil {
		const hint = "install Docker, which creates the network `nat`"
		if err := n.mustHaveService(ctx, "docker", true, "no network of containers exists", hint); err != nil {
			return nil, err
		}
		if err := eventually(ctx, "Docker has created the network of containers", func() (bool, error) {
			// It fails if Docker runs.
			if _, err := n.run(ctx, "sc", "start", "docker"); err == nil {
				n.later("service docker", func(ctx context.Context) error {
					_, err := n.run(ctx, "sc", "stop", "docker")
					return err
				})
			}
			address, err = natAddress(n.natInterface)
			return err == nil, err
		}); err != nil {
			return nil, err
		}
	}
	folder := filepath.Join(n.folder, "cni")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	size, _ := address.Mask.Size()
	return []string{fmt.Sprintf("prefix=%d", size)}, writeJSON(filepath.Join(folder, "nat.conf"), natConfiguration(address))
}

// natAddress returns the address of the host in the network of containers.
func natAddress(name string) (*net.IPNet, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	addresses, err := found.Addrs()
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil {
			return network, nil
		}
	}
	return nil, fmt.Errorf("%s has no IPv4 address", name)
}

// natConfiguration is the CNI configuration for the plugin `nat`. An empty subnet would only fail
// when a container starts.
func natConfiguration(address *net.IPNet) map[string]any {
	network := net.IPNet{IP: address.IP.Mask(address.Mask), Mask: address.Mask}
	return map[string]any{
		"cniVersion": "0.2.0",
		// The name is also the type of the network in Windows.
		"name": natPlugin, "type": natPlugin,
		"master": "Ethernet",
		"ipam": map[string]any{
			"subnet": network.String(),
			"routes": []any{map[string]string{"GW": address.IP.String()}},
		},
		"capabilities": map[string]bool{"portMappings": true, "dns": true},
	}
}
