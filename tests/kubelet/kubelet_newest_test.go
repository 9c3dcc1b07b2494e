//go:build !oldest

package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// kubelet is the part of the newest kubelet that device plugins meet.
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

// machineFor describes NUMA nodes in the type that newManager takes.
func machineFor[Node any](_ func(klog.Logger, []Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), ids []int) []Node {
	return machineWith[Node](ids)
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

// allUnhealthy is the message of a pod that asks for one of a resource without healthy devices.
func allUnhealthy(resource string) string {
	return refusal("no healthy devices present; cannot allocate unhealthy devices " + resource)
}

// unhealthyMeanwhile is the message of a pod whose devices turned unhealthy after it
// was given them.
func unhealthyMeanwhile(resource string) string {
	return refusal("previously allocated devices are no longer healthy; cannot allocate unhealthy devices " + resource)
}

func (k *kubelet) capacity() (capacity, allocatable v1.ResourceList) {
	capacity, allocatable, _ = k.devices.GetCapacity(klog.Background())
	return capacity, allocatable
}

func (k *kubelet) healthyDevices() devicemanager.ResourceDeviceInstances {
	return k.devices.GetAllocatableDevices(klog.Background())
}

func (k *kubelet) runOptions(pod *v1.Pod, container *v1.Container) (*devicemanager.DeviceRunContainerOptions, error) {
	return k.devices.GetDeviceRunContainerOptions(context.Background(), pod, container)
}
