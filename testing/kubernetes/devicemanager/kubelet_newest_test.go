//go:build !older

package kubelet

import (
	"context"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// kubelet is the part of the newest kubelet that device plugins communicate with.
type kubelet struct {
	admission topologymanager.Manager
	devices   *devicemanager.ManagerImpl
}

func newKubelet(topologyPolicy string, numaNodes []int) (*kubelet, error) {
	machine := machineFor(devicemanager.NewManagerImpl, numaNodes)
	logger := klog.Background()
	admission, err := topologymanager.NewManager(logger, machine, topologyPolicy, topologymanager.ContainerTopologyScope, nil)
	if err != nil {
		return nil, err
	}
	devices, err := devicemanager.NewManagerImpl(logger, machine, admission)
	if err != nil {
		return nil, err
	}
	admission.AddHintProvider(logger, devices)
	return &kubelet{admission, devices}, nil
}

// machineFor returns NUMA nodes in cadvisor's type, which newManager takes. It creates them
// from JSON, because naming the type's package would make both module files require
// cadvisor in the version of one kubelet.
func machineFor[Node any](_ func(klog.Logger, []Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int) []Node {
	return machineNodes[Node](ids)
}

func (k *kubelet) start(activePods func() []*v1.Pod) error {
	return k.devices.Start(klog.Background(), activePods, podSourcesReady{}, containermap.NewContainerMap(), sets.New[string]())
}

func (k *kubelet) stop() error {
	return k.devices.Stop(klog.Background())
}

func (k *kubelet) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	return k.admission.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
}

func (k *kubelet) capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable, _ = k.devices.GetCapacity(klog.Background())
	return capacity, allocatable
}

// healthyIDs returns the ids of a resource's healthy devices, in any order.
func (k *kubelet) healthyIDs(resource string) ([]string, error) {
	return slices.Collect(maps.Keys(k.devices.GetAllocatableDevices(klog.Background())[resource])), nil
}

// hints returns the sets of NUMA nodes that suit a container, for a resource.
func (k *kubelet) hints(pod *v1.Pod, container *v1.Container, resource string) []topologymanager.TopologyHint {
	return k.devices.GetTopologyHints(klog.Background(), pod, container, lifecycle.AddOperation)[resource]
}

func (k *kubelet) runOptions(pod *v1.Pod, container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return k.devices.GetDeviceRunContainerOptions(context.Background(), pod, container)
}

// hasCDI is whether containers get CDI devices.
const hasCDI = true

// cdiDevices returns the names of a container's CDI devices.
func cdiDevices(options *devicemanager.DeviceRunContainerOptions) []string {
	var names []string
	for _, device := range options.CDIDevices {
		names = append(names, device.Name)
	}
	return names
}

// predictedInventories returns the inventories whose prediction is compared: all of them.
func predictedInventories(t *testing.T) []string { return inventoryNames(t) }
