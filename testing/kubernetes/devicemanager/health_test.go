package kubelet

import (
	"slices"
	"testing"
	"time"
)

// stoppedByWindows is the problem code CM_PROB_FAILED_POST_START: Windows has stopped the device
// because it reported problems.
const stoppedByWindows = 43

const (
	// twoReplicas advertises two replicas of each GPU, and a removed GPU as unhealthy for longer
	// than a test runs.
	twoReplicas = "multitenancy: 2\nremovalGraceSeconds: 3600\n"
	// twoReplicasShortGrace drops a removed GPU after a second.
	twoReplicasShortGrace = "multitenancy: 2\nremovalGraceSeconds: 1\n"
)

func TestDeviceBecomesUnhealthyAndHealthyAgain(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	common := arguments{inventory: h.path, config: writeConfig(t, twoReplicas)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displayCount(n))
	for range 3 {
		h.setProblem(0, stoppedByWindows)
		took := eventually(t, p, display, devices(4, 2), displayCount(n))
		t.Logf("unhealthy after %v", took)
		mustAdvertise(t, n, p, simulate(t, common, nil).Resources)

		h.setProblem(0, 0)
		took = eventually(t, p, display, devices(4, 4), displayCount(n))
		t.Logf("healthy after %v", took)
	}
}

func TestUnhealthyDevicesAreNotAllocated(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: h.path})
	eventually(t, p, display, devices(2, 2), displayCount(n))
	running := n.mustAdmit(podFor("running", display, 1))
	given, ids := n.container(running), n.deviceIDs(running)
	unhealthy := 0
	if ids[0] != simulate(t, arguments{inventory: h.path}, nil).resource(t, display).Devices[0].ID {
		unhealthy = 1
	}

	h.setProblem(unhealthy, stoppedByWindows)
	eventually(t, p, display, devices(2, 1), displayCount(n))
	mustEqual(t, running.Name, n.container(running), given)
	again, wanted := n.kubelet.admit(running), unhealthySinceAllocation(display)
	if again.Message != wanted {
		t.Errorf("admitting the running pod again gives %q, expected %q", again.Message, wanted)
	}
	n.mustRefuse(podFor("both", display, 2), tooMany(display, 2, 1))
	mustNotShareDevice(t, n, running, n.mustAdmit(podFor("next", display, 1)))
	n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
}

func TestDeviceIsAdded(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	common := arguments{inventory: h.path, config: writeConfig(t, twoReplicas)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displayCount(n))

	h.addAdapter(h.another(h.adapter(0)))
	took := eventually(t, p, display, devices(6, 6), displayCount(n))
	t.Logf("advertised %v after it was added", took)
	mustAdvertise(t, n, p, simulate(t, common, nil).Resources)
}

func TestDeviceIsRemovedAndDropped(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	config := newConfigFile(t, twoReplicas)
	common := arguments{inventory: h.path, config: config.path}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displayCount(n))

	h.removeAdapter(1)
	took := eventually(t, p, display, devices(4, 2), displayCount(n))
	t.Logf("unhealthy %v after it was removed", took)
	mustStay(t, display, devices(4, 2), displayCount(n), time.Second)
	config.change(twoReplicasShortGrace)
	took = eventually(t, p, display, devices(2, 2), displayCount(n))
	t.Logf("dropped %v after the grace period was changed", took)
	mustAdvertise(t, n, p, simulate(t, common, nil).Resources)
}

// A driver update removes the adapter and adds it again with another LUID.
func TestDeviceReturnsWithAnotherLUID(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	common := arguments{inventory: h.path, config: writeConfig(t, twoReplicas)}
	n := startNode(t)
	p := startPlugin(t, common)
	eventually(t, p, display, devices(4, 4), displayCount(n))
	ids := n.healthyIDs(display)

	removed := h.removeAdapter(1)
	eventually(t, p, display, devices(4, 2), displayCount(n))
	h.addAdapter(removed.withLUID(9000002))
	eventually(t, p, display, devices(4, 4), displayCount(n))
	mustStay(t, display, devices(4, 4), displayCount(n), time.Second)
	if got := n.healthyIDs(display); !slices.Equal(got, ids) {
		t.Errorf("the device ids changed to %q from %q", got, ids)
	}
	pod := n.mustAdmit(podFor("pod", display, 4))
	predicted := simulate(t, common, []request{{"pod", display, 4}})
	mustEqual(t, pod.Name, n.container(pod), onThisMachine(*predicted.Pods[0].Container))
}

func TestLastDeviceIsRemoved(t *testing.T) {
	nodeLog.start(t)
	h := copyInventory(t, twoGPUs)
	config := newConfigFile(t, twoReplicas)
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: h.path, config: config.path})
	eventually(t, p, display, devices(4, 4), displayCount(n))
	removed := []adapter{h.removeAdapter(1), h.removeAdapter(0)}
	eventually(t, p, display, devices(4, 0), displayCount(n))
	config.change(twoReplicasShortGrace)
	eventually(t, p, display, devices(0, 0), displayCount(n))
	n.mustRefuse(podFor("pod", display, 1), allUnhealthy(display))
	h.addAdapter(removed[0])
	eventually(t, p, display, devices(2, 2), displayCount(n))
}
