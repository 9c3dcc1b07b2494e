package kubelet

import (
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// display is the resource of devices with a display driver model.
const display = "directx.microsoft.com/display"

// compute is the resource of devices with a compute-only driver model.
const compute = "directx.microsoft.com/compute"

// exclusiveGPUs are arguments for two GPUs that are not shared.
func exclusiveGPUs() arguments { return arguments{inventory: inventoryPath(twoGPUs)} }

// displayCount returns a function that counts the node's devices of the display resource.
func displayCount(n *node) func() count {
	return func() count { return n.count(display) }
}

func TestStoppedPluginLeavesCapacityWithoutAllocatableDevices(t *testing.T) {
	for _, how := range []ending{shutdown, kill} {
		t.Run(string(how), func(t *testing.T) {
			how.require(t)
			nodeLog.start(t)
			n := startNode(t)
			p := startPlugin(t, exclusiveGPUs())
			eventually(t, p, display, devices(2, 2), displayCount(n))
			p.end(how)
			eventually(t, nil, display, devices(2, 0), displayCount(n))
			n.mustRefuse(podFor("late", display, 1), allUnhealthy(display))
		})
	}
}

func TestPluginRestart(t *testing.T) {
	for _, how := range []ending{shutdown, kill} {
		t.Run(string(how), func(t *testing.T) {
			how.require(t)
			nodeLog.start(t)
			n := startNode(t)
			first := startPlugin(t, exclusiveGPUs())
			eventually(t, first, display, devices(2, 2), displayCount(n))
			before := n.mustAdmit(podFor("before", display, 1))
			given := n.container(before)

			first.end(how)
			eventually(t, nil, display, devices(2, 0), displayCount(n))
			second := startPlugin(t, exclusiveGPUs())
			took := eventually(t, second, display, devices(2, 2), displayCount(n))
			t.Logf("registered %v after the second start", took)

			mustEqual(t, before.Name, n.container(before), given)
			after := n.mustAdmit(podFor("after", display, 1))
			mustNotShareDevice(t, n, before, after)
			n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
		})
	}
}

// The plugin waits for a kubelet until it is stopped. This test needs no AF_UNIX sockets.
func TestPluginStopsWithoutAKubelet(t *testing.T) {
	for _, how := range []ending{shutdown, kill} {
		t.Run(string(how), func(t *testing.T) {
			how.require(t)
			nodeLog.start(t)
			p := startPlugin(t, exclusiveGPUs())
			eventually(t, p, "healthy devices in the log", 2, func() int { return nodeLog.count("device is healthy") })
			p.end(how)
			if p.alive() == nil || p.killed != (how == kill) {
				t.Errorf("the plugin was not %s: %v", how, p.command.ProcessState)
			}
			if how == shutdown && p.failure != nil {
				t.Errorf("the plugin exited with an error: %v", p.failure)
			}
		})
	}
}

// The plugin's socket is deleted while the kubelet runs. The kubelet keeps its connection but
// could not open another one.
func TestPluginSocketIsDeleted(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startPlugin(t, exclusiveGPUs())
	eventually(t, p, display, devices(2, 2), displayCount(n))
	before := n.mustAdmit(podFor("before", display, 1))

	for _, socket := range directory.pluginSockets(t) {
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	}
	took := eventually(t, p, "sockets of the plugin", true, func() bool { return len(directory.pluginSockets(t)) > 0 })
	t.Logf("a new socket after %v", took)
	mustStayRegistered(t, n, p)
	mustNotShareDevice(t, n, before, n.mustAdmit(podFor("after", display, 1)))
}

// mustStayRegistered waits until both GPUs are allocatable and remain so. Before that, the kubelet
// may notice that an earlier connection is closed, which it does not report.
func mustStayRegistered(t *testing.T, n *node, p *plugin) {
	t.Helper()
	settle(t, display, devices(2, 2), displayCount(n), 3*time.Second)
	if err := p.alive(); err != nil {
		t.Fatal(err)
	}
}

// mustNotShareDevice fails if the same device is allocated to two pods.
func mustNotShareDevice(t *testing.T, n *node, a, b *v1.Pod) {
	t.Helper()
	for _, id := range n.deviceIDs(a) {
		for _, other := range n.deviceIDs(b) {
			if id == other {
				t.Errorf("pods %s and %s both have %s", a.Name, b.Name, id)
			}
		}
	}
}
