package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// physicalDevice is a device id without the replica number.
func physicalDevice(id string) string { return id[:strings.LastIndex(id, `\`)] }

// physicalDevices returns the physical devices of a pod, each once, sorted.
func physicalDevices(n *node, pod *v1.Pod) []string {
	found := []string{}
	for _, id := range n.deviceIDs(pod) {
		found = append(found, physicalDevice(id))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// The kubelet picks devices at random unless the plugin prefers some. If ten pods in a row
// get the devices that the plugin prefers, this is not by chance.
const rounds = 10

func TestPreferredAllocationSpreadsAContainerOverGPUs(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, "multitenancy: 8")})
	eventually(t, p, display, devices(16, 16), displayCount(n))
	for i := range rounds {
		pod := n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 2))
		if got := physicalDevices(n, pod); len(got) != 2 {
			t.Errorf("pod %d requests two devices and gets two replicas of one GPU: %q", i, n.deviceIDs(pod))
		}
		n.remove(pod)
	}
}

func TestPreferredAllocationSpreadsPodsOverGPUs(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, "multitenancy: 8\nallocationPolicy: distributed")})
	eventually(t, p, display, devices(16, 16), displayCount(n))
	used := map[string]int{}
	for i := range rounds {
		used[physicalDevices(n, n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 1)))[0]]++
	}
	for name, pods := range used {
		if pods != rounds/2 {
			t.Errorf("%s is allocated to %d of %d pods", name, pods, rounds)
		}
	}
}

func TestPreferredAllocationPacksPodsOntoOneGPU(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, "multitenancy: 8\nallocationPolicy: packed")})
	eventually(t, p, display, devices(16, 16), displayCount(n))
	var first []string
	for i := range 8 {
		got := physicalDevices(n, n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 1)))
		if i == 0 {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Errorf("pod %d gets a replica of %q although %q has free replicas", i, got, first)
		}
	}
	last := n.mustAdmit(podFor("ninth", display, 1))
	if slices.Equal(physicalDevices(n, last), first) {
		t.Errorf("the ninth pod gets a replica of %q, which has no free replica", first)
	}
}

// The kubelet allocates the devices of an init container to the main container again, and
// asks the plugin which devices to add to them.
func TestMainContainerReusesDevicesOfInitContainer(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, "multitenancy: 8")})
	eventually(t, p, display, devices(16, 16), displayCount(n))
	const initContainer = "init"
	for i := range rounds {
		pod := podFor(fmt.Sprintf("pod-%d", i), display, 2)
		pod.Spec.InitContainers = []v1.Container{containerWith(initContainer, map[string]int64{display: 1})}
		n.mustAdmit(pod)
		reused := n.deviceIDsOf(pod, initContainer)
		if len(reused) != 1 || !slices.Contains(n.deviceIDs(pod), reused[0]) {
			t.Errorf("pod %d: the init container has %q, the main container %q", i, reused, n.deviceIDs(pod))
		}
		if got := physicalDevices(n, pod); len(got) != 2 {
			t.Errorf("pod %d: the main container has two replicas of one GPU: %q", i, n.deviceIDs(pod))
		}
		n.remove(pod)
	}
}

// resourcesByRule advertises the first GPU as a resource of its own.
const resourcesByRule = `
multitenancy: 2
resources:
- name: example.com/first-gpu
  match:
    locationPath: PCIROOT(0)#PCI(1B00)
  multitenancy: 3
`

func TestSeveralResources(t *testing.T) {
	nodeLog.start(t)
	common := arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, resourcesByRule)}
	const first = "example.com/first-gpu"
	pods := []request{
		{"a", first, 1}, {"b", display, 1}, {"c", first, 2},
		{"d", display, 2}, {"e", display, 1}, {"f", first, 1},
	}
	predicted := simulate(t, common, pods)
	n := startNode(t)
	p := startPlugin(t, common)
	mustAdvertise(t, n, p, predicted.Resources)
	eventually(t, p, first, devices(3, 3), func() count { return n.count(first) })
	eventually(t, p, display, devices(2, 2), displayCount(n))
	for i, pod := range pods {
		mustMatchPrediction(t, n, pod, predicted.Pods[i])
	}
	n.restartKubelet()
	mustAdvertise(t, n, p, predicted.Resources)
}

// For a container that requests two resources, the kubelet merges both responses in a
// random order. Only the device of the first response remains.
func TestContainerWithTwoResources(t *testing.T) {
	nodeLog.start(t)
	common := arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, resourcesByRule)}
	const first = "example.com/first-gpu"
	predicted := simulate(t, common, []request{{"first", first, 1}, {"display", display, 1}})
	one, other := *predicted.Pods[0].Container, *predicted.Pods[1].Container
	possible := []string{one.merged(other).text(), other.merged(one).text()}
	n := startNode(t)
	p := startPlugin(t, common)
	mustAdvertise(t, n, p, predicted.Resources)
	for i := range rounds {
		pod := n.mustAdmit(podWith(fmt.Sprintf("both-%d", i), map[string]int64{first: 1, display: 1}))
		if got := n.container(pod); !slices.Contains(possible, got.text()) {
			t.Fatalf("the container gets\n%s\nexpected either\n%s\nor\n%s", got.text(), possible[0], possible[1])
		}
		n.remove(pod)
	}
}

// If the plugin publishes NUMA nodes, a kubelet with the policy single-numa-node has hints
// for the pod. Otherwise it has none and admits the pod as well.
func TestTopologyHintsOnlyWithPublishNuma(t *testing.T) {
	for _, publish := range []bool{false, true} {
		t.Run(fmt.Sprintf("publishNuma %v", publish), func(t *testing.T) {
			nodeLog.start(t)
			n := startNodeWithTopology(t, topologymanager.PolicySingleNumaNode, []int{0, 1})
			p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: writeConfig(t, fmt.Sprintf("publishNuma: %v", publish))})
			eventually(t, p, display, devices(2, 2), displayCount(n))
			pod := n.mustAdmit(podFor("pod", display, 1))
			hints := n.kubelet.hints(pod, &pod.Spec.Containers[0], display)
			if (len(hints) > 0) != publish {
				t.Errorf("unexpected topology hints for the pod's devices: %v", hints)
			}
		})
	}
}
