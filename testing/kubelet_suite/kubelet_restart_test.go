package kubelet

import (
	"testing"
	"time"

	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

// kubeletEnds are the ways in which a kubelet goes and comes back.
var kubeletEnds = []struct {
	name    string
	restart func(*node)
}{
	{"in an orderly way", func(n *node) { n.restartKubelet() }},
	{"killed", func(n *node) {
		n.crashKubelet()
		n.startKubelet(topologymanager.PolicyNone, nil)
	}},
}

// A kubelet restarts with its checkpoint: the pods keep their devices and options,
// the plugin registers again, and only what is free is given out.
func TestKubeletRestart(t *testing.T) {
	for _, end := range kubeletEnds {
		t.Run(end.name, func(t *testing.T) {
			journal.start(t)
			n := startNode(t)
			p := startPlugin(t, twoCardsByDefault())
			eventually(t, p, display, devices(2, 2), displays(n))
			before := n.mustAdmit(podFor("before", display, 1))
			given, ids := n.container(before), n.deviceIDs(before)

			end.restart(n)
			mustEqual(t, before.Name, n.container(before), given)
			mustBeBack(t, n, p)

			mustEqual(t, before.Name, n.container(before), given)
			after := n.mustAdmit(podFor("after", display, 1))
			mustNotShare(t, n, before, after)
			n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
			n.remove(before)
			heir := n.mustAdmit(podFor("heir", display, 1))
			if got := n.deviceIDs(heir); got[0] != ids[0] {
				t.Errorf("the device that became free is %q; the next pod got %q", ids, got)
			}
		})
	}
}

// A kubelet that restarts again and again always gets the plugin back.
func TestKubeletRestartsTenTimes(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	p := startPlugin(t, twoCardsByDefault())
	eventually(t, p, display, devices(2, 2), displays(n))
	for i := range 10 {
		kubeletEnds[i%len(kubeletEnds)].restart(n)
		mustBeBack(t, n, p)
	}
}

// dialTimeout is how long the kubelet tries to reach a plugin that registers. A
// kubelet that starts deletes sockets; a plugin that registers at that moment and
// does not notice that its socket is gone keeps the kubelet busy for so long.
const dialTimeout = 10 * time.Second

// mustBeBack waits until both cards are there again, and fails if that took a dial
// that timed out.
func mustBeBack(t *testing.T, n *node, p *plugin) {
	t.Helper()
	took := eventually(t, p, display, devices(2, 2), displays(n))
	t.Logf("back %v after the kubelet listened", took)
	if took > dialTimeout/2 {
		t.Errorf("the plugin came back only %v after the kubelet listened", took)
	}
}

// Plugin and kubelet both restart; the kubelet knows the resource from its
// checkpoint and offers nothing until the plugin is there.
func TestKubeletRestartsWhileThePluginIsAway(t *testing.T) {
	journal.start(t)
	n := startNode(t)
	first := startPlugin(t, twoCardsByDefault())
	eventually(t, first, display, devices(2, 2), displays(n))
	before := n.mustAdmit(podFor("before", display, 1))
	given := n.container(before)
	first.stop()

	n.restartKubelet()
	eventually(t, nil, display, devices(0, 0), displays(n))
	mustEqual(t, before.Name, n.container(before), given)
	n.mustRefuse(podFor("early", display, 1), allUnhealthy(display))

	second := startPlugin(t, twoCardsByDefault())
	eventually(t, second, display, devices(2, 2), displays(n))
	mustEqual(t, before.Name, n.container(before), given)
	mustNotShare(t, n, before, n.mustAdmit(podFor("after", display, 1)))
}
