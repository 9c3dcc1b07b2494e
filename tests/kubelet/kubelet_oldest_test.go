//go:build oldest

package kubelet

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// kubelet is the part of the oldest kubelet that device plugins meet.
type kubelet struct {
	admission topologymanager.Manager
	devices   *devicemanager.ManagerImpl
}

func newKubelet(topologyPolicy string, numaNodes []int) (*kubelet, error) {
	machine := machineFor(devicemanager.NewManagerImpl, numaNodes)
	admission, err := topologymanager.NewManager(machine, topologyPolicy, "container", nil)
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

// machineFor describes NUMA nodes in the type that newManager takes.
func machineFor[Node any](_ func([]Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int) []Node {
	return machineWith[Node](ids)
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

// allUnhealthy is the message of a pod that asks for one of a resource without healthy
// devices.
func allUnhealthy(resource string) string { return tooMany(resource, 1, 0) }

// unhealthyMeanwhile is the message of a pod that is admitted again although its
// devices turned unhealthy: none, this kubelet does not look.
func unhealthyMeanwhile(string) string { return "" }

func (k *kubelet) capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable, _ = k.devices.GetCapacity()
	return capacity, allocatable
}

func (k *kubelet) healthyDevices() devicemanager.ResourceDeviceInstances {
	return k.devices.GetAllocatableDevices()
}

func (k *kubelet) runOptions(pod *v1.Pod, container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return k.devices.GetDeviceRunContainerOptions(pod, container)
}
