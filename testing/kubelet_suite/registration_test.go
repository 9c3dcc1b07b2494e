package kubelet

import (
	"os"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// display is the resource of devices with a display driver model.
const display = "directx.microsoft.com/display"

// twoCardsByDefault serves two GPUs that are not shared.
func twoCardsByDefault() arguments { return arguments{inventory: fixturePath(twoCards)} }

// displays is how many devices of the display resource the node has.
func displays(n *node) func() count {
	return func() count { return n.count(display) }
}

func TestPluginRegistersWithARunningKubelet(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, twoCardsByDefault())
	took := eventually(t, p, display, devices(2, 2), displays(n))
	t.Logf("registered, with its list, %v after its start", took)
}

func TestPluginWaitsForTheKubelet(t *testing.T) {
	journal.start(t)
	p := startPlugin(t, twoCardsByDefault())
	time.Sleep(500 * time.Millisecond)
	n := startNode(t)
	took := eventually(t, p, display, devices(2, 2), displays(n))
	t.Logf("registered %v after the kubelet listened", took)
}

func TestPluginEndLeavesCapacityButNothingToAllocate(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			journal.start(t)
			n := startNode(t)
			p := startPlugin(t, twoCardsByDefault())
			eventually(t, p, display, devices(2, 2), displays(n))
			p.end(signal)
			eventually(t, nil, display, devices(2, 0), displays(n))
			n.mustRefuse(podFor("late", display, 1), allUnhealthy(display))
		})
	}
}

func TestPluginRestart(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			journal.start(t)
			n := startNode(t)
			first := startPlugin(t, twoCardsByDefault())
			eventually(t, first, display, devices(2, 2), displays(n))
			before := n.mustAdmit(podFor("before", display, 1))
			given := n.container(before)

			first.end(signal)
			eventually(t, nil, display, devices(2, 0), displays(n))
			second := startPlugin(t, twoCardsByDefault())
			took := eventually(t, second, display, devices(2, 2), displays(n))
			t.Logf("back %v after the second start", took)

			mustEqual(t, before.Name, n.container(before), given)
			after := n.mustAdmit(podFor("after", display, 1))
			mustNotShare(t, n, before, after)
			n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
		})
	}
}

// Kubelets up to 1.36 know one connection a resource: when the old plugin's list
// ends after the new plugin has registered, they close the new plugin's connection.
func TestPluginIsReplacedWhileItStillRuns(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	common := arguments{inventory: fixturePath(twoCards), driverModels: []string{"wddm"}}
	const listed = "State pushed for device plugin"
	first := startPlugin(t, common)
	eventually(t, first, display, devices(2, 2), displays(n))
	lists := journal.count(listed)
	second := startPlugin(t, common)
	eventually(t, second, "the list of the second plugin", true, func() bool { return journal.count(listed) > lists })

	first.stop()
	mustSettle(t, n, second)
	t.Logf("the kubelet was sent %d lists in all", journal.count(listed))
	n.mustAdmit(podFor("pod", display, 1))
}

// Somebody deletes the plugin's socket while the kubelet runs. The kubelet keeps its
// connection, but could not make another one.
func TestPluginSocketIsDeleted(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, twoCardsByDefault())
	eventually(t, p, display, devices(2, 2), displays(n))
	before := n.mustAdmit(podFor("before", display, 1))

	for _, socket := range directory.pluginSockets(t) {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	}
	took := eventually(t, p, "sockets of the plugin", true, func() bool { return len(directory.pluginSockets(t)) > 0 })
	t.Logf("a new socket after %v", took)
	mustSettle(t, n, p)
	mustNotShare(t, n, before, n.mustAdmit(podFor("after", display, 1)))
}

// mustSettle waits until the kubelet has noticed that an earlier connection ended,
// which cannot be asked for, and fails unless both cards are there and stay.
func mustSettle(t *testing.T, n *node, p *plugin) {
	t.Helper()
	time.Sleep(time.Second)
	took := eventually(t, p, display, devices(2, 2), displays(n))
	t.Logf("all there %v after a second", took)
	stays(t, display, devices(2, 2), displays(n), 2*time.Second)
}

// mustNotShare fails if two pods were given a device in common.
func mustNotShare(t *testing.T, n *node, a, b *v1.Pod) {
	t.Helper()
	for _, id := range n.deviceIDs(a) {
		for _, other := range n.deviceIDs(b) {
			if id == other {
				t.Errorf("pods %s and %s both have %s", a.Name, b.Name, id)
			}
		}
	}
}
