//go:build !older

package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-client/pkg/util"
	"k8s.io/klog/v2"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	apisgrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
)

// podResources provides the kubelet's own server of pod resources with the pods of a node and
// the devices of its device manager, as the kubelet's container manager does on Windows.
type podResources struct{ node *node }

func (p podResources) GetPods() []*v1.Pod       { return p.node.activePods() }
func (p podResources) GetActivePods() []*v1.Pod { return p.node.activePods() }

func (p podResources) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range p.node.activePods() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

func (p podResources) UpdateAllocatedDevices(logger klog.Logger) {
	p.node.kubelet.devices.UpdateAllocatedDevices(logger)
}

// GetDevices reports each device separately, as containerDevicesFromResourceDeviceInstances
// does (pkg/kubelet/cm/container_manager.go).
func (p podResources) GetDevices(podUID, container string) []*podresourcesapi.ContainerDevices {
	var devices []*podresourcesapi.ContainerDevices
	for resource, instances := range p.node.kubelet.devices.GetDevices(podUID, container) {
		for id := range instances {
			devices = append(devices, &podresourcesapi.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	return devices
}

func (podResources) GetAllocatableDevices(klog.Logger) []*podresourcesapi.ContainerDevices {
	return nil
}
func (podResources) GetCPUs(*v1.Pod, *v1.Container) []int64 { return []int64{0, 300} }
func (podResources) GetPodCPUs(string) []int64              { return nil }
func (podResources) GetAllocatableCPUs() []int64            { return nil }

func (podResources) GetMemory(klog.Logger, *v1.Pod, *v1.Container) []*podresourcesapi.ContainerMemory {
	return []*podresourcesapi.ContainerMemory{{MemoryType: "memory", Size: 1 << 30}}
}
func (podResources) GetPodMemory(klog.Logger, string) []*podresourcesapi.ContainerMemory { return nil }
func (podResources) GetAllocatableMemory(klog.Logger) []*podresourcesapi.ContainerMemory { return nil }

func (podResources) GetDynamicResources(klog.Logger, *v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}

// podResourcesEndpoint returns an endpoint for a test: its path, and the form of the kubelet.
func podResourcesEndpoint(t *testing.T) (path, endpoint string) {
	if runtime.GOOS == "windows" {
		return `\\.\pipe\kubelet-pod-resources`, "npipe:////./pipe/kubelet-pod-resources"
	}
	path = filepath.Join(t.TempDir(), "kubelet.sock")
	return path, "unix://" + path
}

// startPodResources serves the node's pod resources as the kubelet does
// (ListenAndServePodResources, pkg/kubelet/server/server.go), and returns the path of the
// endpoint.
func startPodResources(t *testing.T, n *node) string {
	t.Helper()
	path, endpoint := podResourcesEndpoint(t)
	listener, err := cri.CreateListener(endpoint)
	if err != nil {
		t.Fatalf("cannot listen on %s: %v", endpoint, err)
	}
	ctx := context.Background()
	limit := apisgrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens)
	server := grpc.NewServer(limit)
	provider := podResources{n}
	podresourcesapi.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(ctx, podresources.PodResourcesProviders{
		Pods: provider, Devices: provider, Cpus: provider, Memory: provider, DynamicResources: provider,
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return path
}

// scrape returns the metrics of the plugin that logged its address.
func scrape(t *testing.T) string {
	t.Helper()
	address := ""
	eventually(t, nil, "the address of the metrics", true, func() bool {
		address = nodeLog.value("address", "serving /metrics")
		return address != ""
	})
	client := http.Client{Timeout: waitLimit}
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the scrape failed: %s %v", response.Status, err)
	}
	return string(text)
}

var seriesLabel = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)

// holders returns which containers hold which devices, sorted, according to the plugin's
// metrics.
func holders(text string) []string {
	held := []string{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "directx_device_allocated_replicas{") {
			continue
		}
		labels := map[string]string{}
		for _, pair := range seriesLabel.FindAllStringSubmatch(line, -1) {
			labels[pair[1]] = strings.ReplaceAll(pair[2], `\\`, `\`)
		}
		held = append(held, holder(labels["namespace"], labels["pod"], labels["container"], labels["device"]))
	}
	slices.Sort(held)
	return held
}

func holder(namespace, pod, container, device string) string {
	return fmt.Sprintf("%s/%s/%s holds %s", namespace, pod, container, device)
}

// The names of pods in the plugin's metrics are those that the kubelet reports, for every
// replica, and follow it.
func TestMetricsHaveThePodsOfTheKubelet(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	endpoint := startPodResources(t, n)
	p := startPlugin(t, exclusiveGPUs(), "--listen", "127.0.0.1:0", "--pod-resources", endpoint)
	eventually(t, p, display, devices(2, 2), displayCount(n))
	if held := holders(scrape(t)); len(held) != 0 {
		t.Errorf("without pods, the metrics have %q", held)
	}

	render, train := n.mustAdmit(podFor("render", display, 1)), n.mustAdmit(podFor("train", display, 1))
	expected := []string{}
	for _, pod := range []*v1.Pod{render, train} {
		for _, replica := range n.deviceIDs(pod) {
			device := replica[:strings.LastIndex(replica, `\`)]
			expected = append(expected, holder("default", pod.Name, mainContainer, device))
		}
	}
	slices.Sort(expected)
	mustHold := func(expected []string) {
		t.Helper()
		took := eventually(t, p, "holders", strings.Join(expected, "\n"), func() string {
			time.Sleep(100 * time.Millisecond)
			return strings.Join(holders(scrape(t)), "\n")
		})
		t.Logf("the metrics have the pods after %v", took)
	}
	mustHold(expected)

	n.remove(train)
	mustHold(slices.DeleteFunc(expected, func(text string) bool { return strings.Contains(text, "/train/") }))
}

// mustReport fails unless this is the health of each of a pod's devices in the pod's status.
func mustReport(t *testing.T, n *node, pod *v1.Pod, expected v1.ResourceHealthStatus) {
	t.Helper()
	status := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: mainContainer}}}
	n.kubelet.devices.UpdateAllocatedResourcesStatus(klog.Background(), pod, &status)
	devices := 0
	for _, resource := range status.ContainerStatuses[0].AllocatedResourcesStatus {
		for _, device := range resource.Resources {
			devices++
			if device.Health != expected {
				t.Errorf("the kubelet reports %s as %s, expected %s", device.ResourceID, device.Health, expected)
			}
		}
	}
	if devices == 0 {
		t.Errorf("the kubelet reports no device of pod %s", pod.Name)
	}
}

// A removed device is dropped when its grace period ends, also if a pod holds it. Until then, the
// kubelet reports it as unhealthy in the status of the pod; afterwards, it reports it as healthy. The
// pod keeps the device when it returns.
func TestRemovedDeviceIsDroppedAlthoughAPodHoldsIt(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	config := newConfigFile(t, "removalGraceSeconds: 3600\n")
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: h.path, config: config.path})
	eventually(t, p, display, devices(2, 2), displayCount(n))
	pod := n.mustAdmit(podFor("render", display, 2))
	mustReport(t, n, pod, v1.ResourceHealthStatusHealthy)

	removed := []adapter{h.removeAdapter(1), h.removeAdapter(0)}
	eventually(t, p, display, devices(2, 0), displayCount(n))
	mustStay(t, display, devices(2, 0), displayCount(n), time.Second)
	mustReport(t, n, pod, v1.ResourceHealthStatusUnhealthy)
	config.change("removalGraceSeconds: 1\n")
	eventually(t, p, display, devices(0, 0), displayCount(n))
	mustReport(t, n, pod, v1.ResourceHealthStatusHealthy)

	h.addAdapter(removed[0])
	h.addAdapter(removed[1])
	eventually(t, p, display, devices(2, 2), displayCount(n))
	n.mustRefuse(podFor("next", display, 1), tooMany(display, 1, 0))
}
