//go:build older

package kubelet

import (
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// containerScope is the topology manager's default scope, which has no public name here.
const containerScope = "container"

// kubelet is the part of an older kubelet that device plugins communicate with.
type kubelet struct {
	admission topologymanager.Manager
	devices   *devicemanager.ManagerImpl
}

func newKubelet(topologyPolicy string, numaNodes []int) (*kubelet, error) {
	machine := machineFor(devicemanager.NewManagerImpl, numaNodes)
	admission, err := topologymanager.NewManager(machine, topologyPolicy, containerScope, nil)
	if err != nil {
		return nil, err
	}
	devices, err := devicemanager.NewManagerImpl(machine, admission)
	if err != nil {
		return nil, err
	}
	admission.AddHintProvider(devices)
	return &kubelet{admission, devices}, nil
}

// machineFor returns NUMA nodes in cadvisor's type; see the same function for the newest
// kubelet.
func machineFor[Node any](_ func([]Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int) []Node {
	return machineNodes[Node](ids)
}

func (k *kubelet) start(activePods func() []*v1.Pod) error {
	return k.devices.Start(activePods, podSourcesReady{}, containermap.NewContainerMap(), nil)
}

// stop stops the device manager. That of 1.26 panics while a plugin is connected whose options it
// does not know yet (PluginDisconnected, pkg/kubelet/cm/devicemanager/manager.go); a moment later
// it has given that plugin up, or knows them.
func (k *kubelet) stop() error {
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		panicked, err := k.tryStop()
		if panicked == nil {
			return err
		}
		if time.Since(start) > waitLimit {
			panic(panicked)
		}
	}
}

func (k *kubelet) tryStop() (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, k.devices.Stop()
}

func (k *kubelet) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	return k.admission.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

func (k *kubelet) capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable, _ = k.devices.GetCapacity()
	return capacity, allocatable
}

// healthyIDs returns the ids of a resource's healthy devices, in any order.
func (k *kubelet) healthyIDs(resource string) ([]string, error) {
	return slices.Collect(maps.Keys(k.devices.GetAllocatableDevices()[resource])), nil
}

// hints returns the sets of NUMA nodes that suit a container, for a resource.
func (k *kubelet) hints(pod *v1.Pod, container *v1.Container, resource string) []topologymanager.TopologyHint {
	return k.devices.GetTopologyHints(pod, container)[resource]
}

func (k *kubelet) runOptions(pod *v1.Pod, container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return k.devices.GetDeviceRunContainerOptions(pod, container)
}

// hasCDI is whether containers get CDI devices: not from 1.26.
const hasCDI = false

// cdiDevices returns nothing: 1.26 has no CDI devices.
func cdiDevices(*devicemanager.DeviceRunContainerOptions) []string { return nil }

// predictedInventories returns the inventories whose prediction is compared. `simulate` does not
// depend on the version of the kubelet, so some with several devices, models and vendors suffice.
func predictedInventories(*testing.T) []string {
	return []string{twoGPUs, "made-up-two-vendors.yaml", "made-up-wddm-and-mcdm.yaml"}
}
