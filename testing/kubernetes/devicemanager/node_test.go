package kubelet

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// node is the part of a Kubernetes node that device plugins deal with: a kubelet and its
// pods.
type node struct {
	t       *testing.T
	kubelet *kubelet

	mutex sync.Mutex
	pods  []*v1.Pod
}

// podSourcesReady reports that the kubelet knows all its pods, so that it frees the devices
// of pods that no longer exist.
type podSourcesReady struct{}

func (podSourcesReady) AddSource(string) {}
func (podSourcesReady) AllReady() bool   { return true }

// startNode starts a kubelet with the default topology policy.
func startNode(t *testing.T) *node {
	return startNodeWithTopology(t, topologymanager.PolicyNone, nil)
}

// startNodeWithTopology starts a kubelet with NUMA nodes and a policy for them.
func startNodeWithTopology(t *testing.T, policy string, numaNodes []int) *node {
	t.Helper()
	n := &node{t: t}
	n.startKubelet(policy, numaNodes)
	t.Cleanup(func() {
		n.stopKubelet()
		directory.clear(t)
	})
	return n
}

func (n *node) startKubelet(policy string, numaNodes []int) {
	n.t.Helper()
	started, err := newKubelet(policy, numaNodes)
	if err == nil {
		err = started.start(n.activePods)
	}
	if err != nil {
		n.t.Fatalf("cannot start the device manager: %v", err)
	}
	n.kubelet = started
}

func (n *node) stopKubelet() {
	if err := n.kubelet.stop(); err != nil {
		n.t.Errorf("cannot stop the device manager: %v", err)
	}
}

// restartKubelet shuts the kubelet down and starts another one, which reads the checkpoint
// of the first.
func (n *node) restartKubelet() {
	n.t.Helper()
	n.stopKubelet()
	n.startKubelet(topologymanager.PolicyNone, nil)
}

// crashKubelet stops the kubelet and leaves its socket in place, as a killed kubelet does.
func (n *node) crashKubelet() {
	n.t.Helper()
	socket := directory.file("kubelet.sock")
	aside := directory.aside("kubelet.sock")
	if err := os.Rename(socket, aside); err != nil {
		n.t.Fatal(err)
	}
	n.stopKubelet()
	if err := os.Rename(aside, socket); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) activePods() []*v1.Pod {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.Clone(n.pods)
}

// admit passes pod to the kubelet, which allocates its devices. A pod that the kubelet does
// not admit is removed.
func (n *node) admit(pod *v1.Pod) lifecycle.PodAdmitResult {
	n.mutex.Lock()
	n.pods = append(n.pods, pod)
	n.mutex.Unlock()
	result := n.kubelet.admit(pod)
	if !result.Admit {
		n.remove(pod)
	}
	return result
}

// mustAdmit admits a pod, and fails if the kubelet does not admit it.
func (n *node) mustAdmit(pod *v1.Pod) *v1.Pod {
	n.t.Helper()
	if result := n.admit(pod); !result.Admit {
		n.t.Fatalf("pod %s is not admitted: %s: %s", pod.Name, result.Reason, result.Message)
	}
	return pod
}

// mustRefuse fails unless the kubelet refuses a pod with exactly this message.
func (n *node) mustRefuse(pod *v1.Pod, message string) {
	n.t.Helper()
	result := n.admit(pod)
	if result.Admit {
		n.t.Fatalf("pod %s is admitted with %v", pod.Name, n.deviceIDs(pod))
	}
	if result.Message != message {
		n.t.Fatalf("pod %s is refused with %q, expected %q", pod.Name, result.Message, message)
	}
}

// remove deletes a pod.
func (n *node) remove(pod *v1.Pod) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.pods = slices.DeleteFunc(n.pods, func(p *v1.Pod) bool { return p.UID == pod.UID })
}

// mainContainer is the name of the container that requests devices.
const mainContainer = "main"

// container returns what the kubelet passes to the runtime for the pod's main container.
func (n *node) container(pod *v1.Pod) containerOptions {
	n.t.Helper()
	options, err := n.kubelet.runOptions(pod, &pod.Spec.Containers[0])
	if err != nil {
		n.t.Fatalf("no container options for pod %s: %v", pod.Name, err)
	}
	return optionsFromKubelet(options)
}

// deviceIDs returns the ids of the devices that are allocated to the pod's main container,
// sorted.
func (n *node) deviceIDs(pod *v1.Pod) []string { return n.deviceIDsOf(pod, mainContainer) }

func (n *node) deviceIDsOf(pod *v1.Pod, container string) []string {
	return slices.Sorted(slices.Values(n.kubelet.deviceIDs(pod, container)))
}

// count is how many devices of a resource the node reports. known is false for a resource
// that it does not report.
type count struct {
	known                 bool
	capacity, allocatable int64
}

func (c count) String() string {
	if !c.known {
		return "unknown"
	}
	return fmt.Sprintf("capacity %d, allocatable %d", c.capacity, c.allocatable)
}

// devices returns the count of a resource that the node reports.
func devices(capacity, allocatable int64) count {
	return count{true, capacity, allocatable}
}

func (n *node) count(resourceName string) count {
	capacities, allocatables := n.kubelet.capacity()
	capacity, known := capacities[v1.ResourceName(resourceName)]
	allocatable := allocatables[v1.ResourceName(resourceName)]
	return count{known, capacity.Value(), allocatable.Value()}
}

// resourceNames returns the names of the resources that the node reports, sorted.
func (n *node) resourceNames() []string {
	capacities, _ := n.kubelet.capacity()
	names := []string{}
	for name := range capacities {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// healthyIDs returns the ids of a resource's healthy devices, sorted.
func (n *node) healthyIDs(resourceName string) []string {
	n.t.Helper()
	ids, err := n.kubelet.healthyIDs(resourceName)
	if err != nil {
		n.t.Fatalf("cannot read the healthy devices of %s: %v", resourceName, err)
	}
	return slices.Sorted(slices.Values(ids))
}

// podWith returns a pod with one container that requests devices.
func podWith(name string, requests map[string]int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-of-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{containerWith(mainContainer, requests)}},
	}
}

// containerWith returns a container that requests devices.
func containerWith(name string, requests map[string]int64) v1.Container {
	limits := v1.ResourceList{}
	for resourceName, amount := range requests {
		limits[v1.ResourceName(resourceName)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return v1.Container{Name: name, Resources: v1.ResourceRequirements{Limits: limits, Requests: limits}}
}

// podFor returns a pod that requests devices of one resource.
func podFor(name, resourceName string, amount int64) *v1.Pod {
	return podWith(name, map[string]int64{resourceName: amount})
}
