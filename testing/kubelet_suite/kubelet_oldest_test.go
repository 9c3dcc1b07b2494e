//go:build oldest

package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// runsOnWindows reports whether this kubelet has a device manager on Windows: the first one
// is 1.21 (pkg/kubelet/cm/container_manager_windows.go).
const runsOnWindows = false

// kubelet is the part of the oldest kubelet that device plugins communicate with.
type kubelet struct {
	admission topologymanager.Manager
	devices   *devicemanager.ManagerImpl
}

func newKubelet(topologyPolicy string, numaNodes []int) (*kubelet, error) {
	machine := topology.NUMANodeInfo{}
	for _, id := range numaNodes {
		noCPUs := machine[id]
		machine[id] = noCPUs
	}
	admission, err := topologymanager.NewManager(machine, topologyPolicy)
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

func (k *kubelet) start(activePods func() []*v1.Pod) error {
	return k.devices.Start(activePods, podSourcesReady{})
}

func (k *kubelet) stop() error {
	return k.devices.Stop()
}

func (k *kubelet) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	return k.admission.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
}

// allUnhealthy is the message for a pod that requests one device of a resource without
// healthy devices.
func allUnhealthy(resource string) string { return tooMany(resource, 1, 0) }

// unhealthySinceAllocation is the message for a pod whose devices became unhealthy after
// they were allocated to it: none, because this kubelet does not check.
func unhealthySinceAllocation(string) string { return "" }

func (k *kubelet) capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable, _ = k.devices.GetCapacity()
	return capacity, allocatable
}

// healthyIDs returns the ids of a resource's healthy devices, in any order. This kubelet
// writes them only to its checkpoint, just after it has counted a new list.
func (k *kubelet) healthyIDs(resource string) ([]string, error) {
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ids, err := checkpointedIDs(resource)
		_, allocatable := k.capacity()
		counted := allocatable[v1.ResourceName(resource)]
		if err == nil && int64(len(ids)) == counted.Value() {
			return ids, nil
		}
		if time.Since(start) > waitLimit {
			return nil, fmt.Errorf("the checkpoint contains %d of %d devices: %w", len(ids), counted.Value(), err)
		}
	}
}

func checkpointedIDs(resource string) ([]string, error) {
	text, err := os.ReadFile(directory.file("kubelet_internal_checkpoint"))
	if err != nil {
		return nil, err
	}
	var checkpoint struct {
		Data struct{ RegisteredDevices map[string][]string }
	}
	err = json.Unmarshal(text, &checkpoint)
	return checkpoint.Data.RegisteredDevices[resource], err
}

// deviceIDs returns the ids of the devices that are allocated to a container, in any order.
func (k *kubelet) deviceIDs(pod *v1.Pod, container string) []string {
	ids := []string{}
	for _, devices := range k.devices.GetDevices(string(pod.UID), container) {
		ids = append(ids, devices.DeviceIds...)
	}
	return ids
}

// hints returns the sets of NUMA nodes that suit a container, for a resource.
func (k *kubelet) hints(pod *v1.Pod, container *v1.Container, resource string) []topologymanager.TopologyHint {
	return k.devices.GetTopologyHints(pod, container)[resource]
}

func (k *kubelet) runOptions(pod *v1.Pod, container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return k.devices.GetDeviceRunContainerOptions(pod, container)
}
