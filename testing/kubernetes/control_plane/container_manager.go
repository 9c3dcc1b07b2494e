package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/healthz"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/resourceupdates"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
	"k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// containerManager is what a kubelet on Windows has: the device manager, and by default nothing
// that manages processors, memory or control groups. The kubelet's type for Windows is not part of
// its builds for other systems, so this one follows it (pkg/kubelet/cm/container_manager_windows.go).
type containerManager struct {
	// What a kubelet without any of these managers does.
	cm.ContainerManager
	devices   devicemanager.Manager
	admission topologymanager.Manager
}

// newContainerManager returns the container manager of a kubelet. The topology manager is what
// asks the device manager to allocate devices when a pod is admitted. On Windows, a kubelet has
// one only with the feature gate WindowsCPUAndMemoryAffinity. Without it, devices are allocated
// when the first container is created that has none.
func newContainerManager(logger klog.Logger, affinity bool) (*containerManager, error) {
	admission := topologymanager.NewFakeManager(logger)
	if affinity {
		var err error
		admission, err = topologymanager.NewManager(logger, nil, topologymanager.PolicyNone, topologymanager.ContainerTopologyScope, nil)
		if err != nil {
			return nil, err
		}
	}
	devices, err := devicemanager.NewManagerImpl(logger, nil, admission)
	if err != nil {
		return nil, err
	}
	admission.AddHintProvider(logger, devices)
	return &containerManager{cm.NewStubContainerManager(), devices, admission}, nil
}

func (m *containerManager) Start(ctx context.Context, node *v1.Node, activePods cm.ActivePodsFunc, getNode cm.GetNodeFunc,
	sources config.SourcesReady, statuses status.PodStatusProvider, runtime internalapi.RuntimeService, isolation bool) error {
	if err := m.ContainerManager.Start(ctx, node, activePods, getNode, sources, statuses, runtime, isolation); err != nil {
		return err
	}
	containers, running := existingContainers(ctx, runtime)
	return m.devices.Start(klog.FromContext(ctx), devicemanager.ActivePodsFunc(activePods), sources, containers, running)
}

// existingContainers returns the containers of the runtime, and the identifiers of those that run.
// The device manager does not check the devices of a container that survived the kubelet.
func existingContainers(ctx context.Context, runtime internalapi.RuntimeService) (containermap.ContainerMap, sets.Set[string]) {
	pods := map[string]string{}
	sandboxes, _ := runtime.ListPodSandbox(ctx, nil)
	for _, sandbox := range sandboxes {
		pods[sandbox.Id] = sandbox.Metadata.Uid
	}
	known, running := containermap.NewContainerMap(), sets.New[string]()
	containers, _ := runtime.ListContainers(ctx, nil)
	for _, container := range containers {
		pod, ok := pods[container.PodSandboxId]
		if !ok {
			continue
		}
		known.Add(pod, container.Metadata.Name, container.Id)
		if container.State == runtimev1.ContainerState_CONTAINER_RUNNING {
			running.Insert(container.Id)
		}
	}
	return known, running
}

func (m *containerManager) GetPluginRegistrationHandlers() map[string]cache.PluginHandler {
	return map[string]cache.PluginHandler{registration.DevicePlugin: m.devices.GetWatcherHandler()}
}

func (m *containerManager) GetHealthCheckers() []healthz.HealthChecker {
	return []healthz.HealthChecker{m.devices.GetHealthChecker()}
}

func (m *containerManager) GetDevicePluginResourceCapacity(logger klog.Logger) (v1.ResourceList, v1.ResourceList, []string) {
	return m.devices.GetCapacity(logger)
}

func (m *containerManager) GetResources(ctx context.Context, pod *v1.Pod, container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
	found, err := m.devices.GetDeviceRunContainerOptions(ctx, pod, container)
	if err != nil || found == nil {
		return &kubecontainer.RunContainerOptions{}, err
	}
	return &kubecontainer.RunContainerOptions{
		Devices: found.Devices, Mounts: found.Mounts, Envs: found.Envs, Annotations: found.Annotations,
	}, nil
}

func (m *containerManager) UpdateAllocatedResourcesStatus(logger klog.Logger, pod *v1.Pod, status *v1.PodStatus) {
	m.devices.UpdateAllocatedResourcesStatus(logger, pod, status)
}

func (m *containerManager) Updates() <-chan resourceupdates.Update { return m.devices.Updates() }

func (m *containerManager) UpdatePluginResources(node *framework.NodeInfo, attributes *lifecycle.PodAdmitAttributes) error {
	return m.devices.UpdatePluginResources(node, attributes)
}

// GetDevices returns the devices of a container for the PodResources API: one entry each.
func (m *containerManager) GetDevices(pod, container string) []*podresources.ContainerDevices {
	var found []*podresources.ContainerDevices
	for resource, devices := range m.devices.GetDevices(pod, container) {
		for id := range devices {
			found = append(found, &podresources.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	return found
}

func (m *containerManager) ShouldResetExtendedResourceCapacity() bool {
	return m.devices.ShouldResetExtendedResourceCapacity()
}

func (m *containerManager) GetAllocateResourcesPodAdmitHandler(klog.Logger) lifecycle.PodAdmitHandler {
	return m.admission
}
