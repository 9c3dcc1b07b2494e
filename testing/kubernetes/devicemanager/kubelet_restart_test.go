package kubelet

import (
	"fmt"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// kubeletRestarts are the ways in which a kubelet restarts.
var kubeletRestarts = []struct {
	name    string
	restart func(*node)
}{
	{"after a shutdown", func(n *node) { n.restartKubelet() }},
	{"after a crash", func(n *node) {
		n.crashKubelet()
		n.startKubelet(topologymanager.PolicyNone, nil)
	}},
}

// After a restart the kubelet reads its checkpoint: pods keep their devices and options, the
// plugin registers again, and only free devices are allocated.
func TestKubeletRestart(t *testing.T) {
	for _, kind := range kubeletRestarts {
		t.Run(kind.name, func(t *testing.T) {
			nodeLog.start(t)
			n := startNode(t)
			p := startPlugin(t, exclusiveGPUs())
			eventually(t, p, display, devices(2, 2), displayCount(n))
			awaitCheckpoints(t, p)
			before := n.mustAdmit(podFor("before", display, 1))
			given, ids := n.container(before), n.deviceIDs(before)

			kind.restart(n)
			mustEqual(t, before.Name, n.container(before), given)
			mustReregister(t, n, p)

			mustEqual(t, before.Name, n.container(before), given)
			after := n.mustAdmit(podFor("after", display, 1))
			mustNotShareDevice(t, n, before, after)
			n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
			n.remove(before)
			next := n.mustAdmit(podFor("next", display, 1))
			if got := n.deviceIDs(next); got[0] != ids[0] {
				t.Errorf("the freed device is %q, the next pod gets %q", ids, got)
			}
		})
	}
}

// mustReregister waits until both GPUs are allocatable again. A starting kubelet deletes sockets.
// If a plugin registers at that moment and does not notice that its socket was deleted, the
// kubelet is blocked for ten seconds.
func mustReregister(t *testing.T, n *node, p *plugin) {
	t.Helper()
	took := eventually(t, p, display, devices(2, 2), displayCount(n))
	t.Logf("registered %v after the kubelet listened", took)
}

// Plugin and kubelet both restart. The kubelet knows the resource from its checkpoint and
// reports no devices until the plugin registers.
func TestKubeletRestartsWhilePluginIsDown(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	first := startPlugin(t, exclusiveGPUs())
	eventually(t, first, display, devices(2, 2), displayCount(n))
	awaitCheckpoints(t, first)
	before := n.mustAdmit(podFor("before", display, 1))
	given := n.container(before)
	first.stop()

	n.restartKubelet()
	eventually(t, nil, display, devices(0, 0), displayCount(n))
	mustEqual(t, before.Name, n.container(before), given)
	n.mustRefuse(podFor("early", display, 1), allUnhealthy(display))

	second := startPlugin(t, exclusiveGPUs())
	eventually(t, second, display, devices(2, 2), displayCount(n))
	mustEqual(t, before.Name, n.container(before), given)
	mustNotShareDevice(t, n, before, n.mustAdmit(podFor("after", display, 1)))
}

// awaitCheckpoints waits until the kubelet has written its checkpoint for the first device list of
// each resource. The kubelet collects the content of a checkpoint under a lock and writes it
// without one: a pod that is admitted at the same time may be missing from the file.
func awaitCheckpoints(t *testing.T, p *plugin) {
	t.Helper()
	for _, resource := range []string{display, compute} {
		processed := fmt.Sprintf("\"Processed device updates for resource\" resourceName=%q", resource)
		eventually(t, p, processed, true, func() bool { return nodeLog.count(processed) > 0 })
	}
}
