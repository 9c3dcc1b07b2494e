package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// card is the physical device of a device id: all but the replica's number.
func card(id string) string { return id[:strings.LastIndex(id, `\`)] }

// cards are the physical devices of a pod, each once, sorted.
func cards(n *node, pod *v1.Pod) []string {
	found := []string{}
	for _, id := range n.deviceIDs(pod) {
		found = append(found, card(id))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// The kubelet picks devices at random unless the plugin prefers some; ten pods in a
// row that all got what the plugin prefers were not picked at random.
const rounds = 10

func TestPreferredAllocationSpreadsAContainerOverCards(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: fixturePath(twoCards), config: writeConfig(t, "multitenancy: 8")})
	eventually(t, p, display, devices(16, 16), displays(n))
	for i := range rounds {
		pod := n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 2))
		if got := cards(n, pod); len(got) != 2 {
			t.Errorf("pod %d asks for two devices and gets two replicas of one card: %q", i, n.deviceIDs(pod))
		}
		n.remove(pod)
	}
}

func TestPreferredAllocationSpreadsPodsOverCards(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: fixturePath(twoCards), config: writeConfig(t, "multitenancy: 8\nallocationPolicy: distributed")})
	eventually(t, p, display, devices(16, 16), displays(n))
	used := map[string]int{}
	for i := range rounds {
		used[cards(n, n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 1)))[0]]++
	}
	for name, pods := range used {
		if pods != rounds/2 {
			t.Errorf("%s has %d of %d pods", name, pods, rounds)
		}
	}
}

func TestPreferredAllocationPacksPodsOntoOneCard(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: fixturePath(twoCards), config: writeConfig(t, "multitenancy: 8\nallocationPolicy: packed")})
	eventually(t, p, display, devices(16, 16), displays(n))
	var first []string
	for i := range 8 {
		got := cards(n, n.mustAdmit(podFor(fmt.Sprintf("pod-%d", i), display, 1)))
		if i == 0 {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Errorf("pod %d is on %q although %q has room", i, got, first)
		}
	}
	last := n.mustAdmit(podFor("ninth", display, 1))
	if slices.Equal(cards(n, last), first) {
		t.Errorf("the ninth pod is on %q, which is full", first)
	}
}

// What an init container was given, the kubelet gives the main container as well, and
// asks the plugin which devices go best with it.
func TestDevicesOfAnInitContainerAreReused(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: fixturePath(twoCards), config: writeConfig(t, "multitenancy: 8")})
	eventually(t, p, display, devices(16, 16), displays(n))
	const initContainer = "init"
	for i := range rounds {
		pod := podFor(fmt.Sprintf("pod-%d", i), display, 2)
		pod.Spec.InitContainers = []v1.Container{containerWith(initContainer, map[string]int64{display: 1})}
		n.mustAdmit(pod)
		reused := n.deviceIDsOf(pod, initContainer)
		if len(reused) != 1 || !slices.Contains(n.deviceIDs(pod), reused[0]) {
			t.Errorf("pod %d: the init container has %q, the main container %q", i, reused, n.deviceIDs(pod))
		}
		if got := cards(n, pod); len(got) != 2 {
			t.Errorf("pod %d: the main container has two replicas of one card: %q", i, n.deviceIDs(pod))
		}
		n.remove(pod)
	}
}

// resourcesByRule gives the first card a resource of its own.
const resourcesByRule = `
multitenancy: 2
resources:
- name: example.com/first-card
  match:
    locationPath: PCIROOT(0)#PCI(1B00)
  multitenancy: 3
`

func TestSeveralResourcesAtOnce(t *testing.T) {
	journal.start(t)
	common := arguments{inventory: fixturePath(twoCards), config: writeConfig(t, resourcesByRule)}
	const first = "example.com/first-card"
	pods := []request{
		{"a", first, 1}, {"b", display, 1}, {"c", first, 2},
		{"d", display, 2}, {"e", display, 1}, {"f", first, 1},
	}
	predicted := simulate(t, common, pods)
	n := startNode(t)
	p := startPlugin(t, common)
	mustOffer(t, n, p, predicted.Resources)
	eventually(t, p, first, devices(3, 3), func() count { return n.count(first) })
	eventually(t, p, display, devices(2, 2), displays(n))
	for i, pod := range pods {
		compare(t, n, pod, predicted.Pods[i])
	}
	n.restartKubelet()
	mustOffer(t, n, p, predicted.Resources)
}

// A container that asks for two resources gets both answers merged, in an order that
// the kubelet leaves to chance: one device only, by the first.
func TestOneContainerWithTwoResources(t *testing.T) {
	journal.start(t)
	common := arguments{inventory: fixturePath(twoCards), config: writeConfig(t, resourcesByRule)}
	const first = "example.com/first-card"
	predicted := simulate(t, common, []request{{"first", first, 1}, {"display", display, 1}})
	one, other := *predicted.Pods[0].Container, *predicted.Pods[1].Container
	possible := []string{one.merged(other).text(), other.merged(one).text()}
	n := startNode(t)
	p := startPlugin(t, common)
	mustOffer(t, n, p, predicted.Resources)
	for i := range rounds {
		pod := n.mustAdmit(podWith(fmt.Sprintf("both-%d", i), map[string]int64{first: 1, display: 1}))
		if got := n.container(pod); !slices.Contains(possible, got.text()) {
			t.Fatalf("the container gets\n%s\nwhich is neither\n%s\nnor\n%s", got.text(), possible[0], possible[1])
		}
		n.remove(pod)
	}
}

// With topology published, a kubelet that insists on one NUMA node aligns the pod;
// without, it has nothing to align and admits the pod as well.
func TestTopologyOnlyWhereItIsPublished(t *testing.T) {
	for _, publish := range []bool{false, true} {
		t.Run(fmt.Sprintf("publishNuma %v", publish), func(t *testing.T) {
			journal.start(t)
			n := startNodeWithTopology(t, topologymanager.PolicySingleNumaNode, []int{0, 1})
			p := startPlugin(t, arguments{inventory: fixturePath(twoCards), config: writeConfig(t, fmt.Sprintf("publishNuma: %v", publish))})
			eventually(t, p, display, devices(2, 2), displays(n))
			pod := n.mustAdmit(podFor("pod", display, 1))
			hints := n.kubelet.hints(pod, &pod.Spec.Containers[0], display)
			if (len(hints) > 0) != publish {
				t.Errorf("the kubelet knows these NUMA nodes for the pod's devices: %v", hints)
			}
		})
	}
}
