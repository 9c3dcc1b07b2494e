package kubelet

import (
	"slices"
	"testing"
	"time"
)

const (
	// stoppedByWindows is CM_PROB_FAILED_POST_START: Windows stopped the device
	// because it reported problems.
	stoppedByWindows = 43
	// grace is how long a device that is gone stays listed as unhealthy.
	grace = 3 * time.Second
)

// sharedByTwo offers each GPU twice and forgets one that is gone after the grace time.
const sharedByTwo = "multitenancy: 2\nremovalGraceSeconds: 3\n"

func TestDeviceTurnsUnhealthyAndBack(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	common := arguments{inventory: h.path, config: writeConfig(t, sharedByTwo)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displays(n))
	for range 3 {
		h.setProblem(0, stoppedByWindows)
		took := eventually(t, p, display, devices(4, 2), displays(n))
		t.Logf("unhealthy after %v", took)
		mustOffer(t, n, p, simulate(t, common, nil).Resources)

		h.setProblem(0, 0)
		took = eventually(t, p, display, devices(4, 4), displays(n))
		t.Logf("healthy after %v", took)
	}
}

func TestUnhealthyDevicesAreNotAllocated(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: h.path})
	eventually(t, p, display, devices(2, 2), displays(n))
	running := n.mustAdmit(podFor("running", display, 1))
	given, ids := n.container(running), n.deviceIDs(running)
	sick := 0
	if ids[0] != simulate(t, arguments{inventory: h.path}, nil).resource(t, display).Devices[0].ID {
		sick = 1
	}

	h.setProblem(sick, stoppedByWindows)
	eventually(t, p, display, devices(2, 1), displays(n))
	mustEqual(t, running.Name, n.container(running), given)
	again, wanted := n.kubelet.admit(running), unhealthyMeanwhile(display)
	if again.Message != wanted {
		t.Errorf("the running pod is admitted again with %q, not %q", again.Message, wanted)
	}
	n.mustRefuse(podFor("both", display, 2), tooMany(display, 2, 1))
	mustNotShare(t, n, running, n.mustAdmit(podFor("next", display, 1)))
	n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
}

func TestDeviceIsPluggedIn(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	common := arguments{inventory: h.path, config: writeConfig(t, sharedByTwo)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displays(n))

	h.plug(h.another(h.adapter(0)))
	took := eventually(t, p, display, devices(6, 6), displays(n))
	t.Logf("offered %v after it was plugged in", took)
	mustOffer(t, n, p, simulate(t, common, nil).Resources)
}

func TestDeviceIsPulledAndForgotten(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	common := arguments{inventory: h.path, config: writeConfig(t, sharedByTwo)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displays(n))

	h.pull(1)
	took := eventually(t, p, display, devices(4, 2), displays(n))
	t.Logf("unhealthy %v after it was pulled", took)
	took = eventually(t, p, display, devices(2, 2), displays(n))
	t.Logf("forgotten %v after that", took)
	if took < grace-time.Second || took > grace+5*time.Second {
		t.Errorf("a device that is gone is forgotten after %v; the configuration says %v", took, grace)
	}
	mustOffer(t, n, p, simulate(t, common, nil).Resources)
}

// A driver update takes the adapter away and brings it back with another LUID.
func TestDeviceComesBackWithAnotherLUID(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	common := arguments{inventory: h.path, config: writeConfig(t, sharedByTwo)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displays(n))
	ids := n.healthyIDs(display)

	pulled := h.pull(1)
	eventually(t, p, display, devices(4, 2), displays(n))
	h.plug(pulled.withLUID(9000002))
	eventually(t, p, display, devices(4, 4), displays(n))
	stays(t, display, devices(4, 4), displays(n), grace+time.Second)
	if got := n.healthyIDs(display); !slices.Equal(got, ids) {
		t.Errorf("the devices are %q, before they were %q", got, ids)
	}
	pod := n.mustAdmit(podFor("pod", display, 4))
	predicted := simulate(t, common, []request{{"pod", display, 4}})
	mustEqual(t, pod.Name, n.container(pod), *predicted.Pods[0].Container)
}

func TestLastDeviceIsPulled(t *testing.T) {
	journal.start(t)
	h := copyOf(t, twoCards)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: h.path, config: writeConfig(t, sharedByTwo)})
	eventually(t, p, display, devices(4, 4), displays(n))
	pulled := []adapter{h.pull(1), h.pull(0)}
	eventually(t, p, display, devices(4, 0), displays(n))
	eventually(t, p, display, devices(0, 0), displays(n))
	n.mustRefuse(podFor("pod", display, 1), allUnhealthy(display))
	h.plug(pulled[0])
	eventually(t, p, display, devices(2, 2), displays(n))
}
