package kubelet

import (
	"os"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

// configFile is the configuration of a running plugin.
type configFile struct {
	t    *testing.T
	path string
}

func newConfigFile(t *testing.T, text string) configFile {
	t.Helper()
	return configFile{t, writeConfig(t, text)}
}

// change replaces the file in one step.
func (c configFile) change(text string) {
	c.t.Helper()
	next := c.path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
	if err := replace(next, c.path); err != nil {
		c.t.Fatal(err)
	}
}

// A kubelet forgets the devices of a resource whose stream ends, so the count must go from one
// value to the other.
func TestReloadChangesReplicasAndRunningPodsKeepTheirDevices(t *testing.T) {
	nodeLog.start(t)
	config := newConfigFile(t, "multitenancy: 2")
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: config.path})
	eventually(t, p, display, devices(4, 4), displayCount(n))
	running := n.mustAdmit(podFor("running", display, 1))
	given, ids := n.container(running), n.deviceIDs(running)

	config.change("multitenancy: 3")
	took := eventually(t, p, display, devices(6, 6), changing(t, n, devices(4, 4), devices(6, 6)))
	t.Logf("the kubelet has the new list %v after the change", took)
	mustEqual(t, running.Name, n.container(running), given)
	mustHold(t, n, running, ids)
	rest := n.mustAdmit(podFor("rest", display, 5))
	n.mustRefuse(podFor("one-too-many", display, 1), tooMany(display, 1, 0))
	n.remove(rest)

	config.change("multitenancy: 1")
	eventually(t, p, display, devices(2, 2), changing(t, n, devices(6, 6), devices(2, 2)))
	mustEqual(t, running.Name, n.container(running), given)
	mustHold(t, n, running, ids)
	mustAdvertise(t, n, p, simulate(t, arguments{inventory: inventoryPath(twoGPUs), config: config.path}, nil).Resources)
}

// mustHold fails if other devices than these are allocated to the pod.
func mustHold(t *testing.T, n *node, pod *v1.Pod, ids []string) {
	t.Helper()
	if got := n.deviceIDs(pod); !slices.Equal(got, ids) {
		t.Errorf("pod %s has the devices %q, expected %q", pod.Name, got, ids)
	}
}

// changing returns a function that counts the devices of the display resource, and fails on any
// other count than these.
func changing(t *testing.T, n *node, before, after count) func() count {
	return func() count {
		now := n.count(display)
		if now != before && now != after {
			t.Fatalf("%s: %v, expected %v or %v", display, now, before, after)
		}
		return now
	}
}

func TestReloadAddsAndRemovesAResource(t *testing.T) {
	const shared = "example.com/shared-gpu"
	nodeLog.start(t)
	config := newConfigFile(t, "multitenancy: 1")
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: config.path})
	eventually(t, p, display, devices(2, 2), displayCount(n))
	running := n.mustAdmit(podFor("running", display, 1))
	given := n.container(running)
	sharedCount := func() count { return n.count(shared) }

	for range 2 {
		config.change("resources: [{name: " + shared + ", match: {vendor: nvidia}, multitenancy: 4}]")
		eventually(t, p, shared, devices(8, 8), sharedCount)
		eventually(t, p, display, devices(0, 0), displayCount(n))
		pod := n.mustAdmit(podFor("shared", shared, 1))
		n.remove(pod)
		mustEqual(t, running.Name, n.container(running), given)

		config.change("multitenancy: 1")
		eventually(t, p, display, devices(2, 2), displayCount(n))
		eventually(t, p, shared, devices(8, 0), sharedCount)
		n.mustRefuse(podFor("late", shared, 1), allUnhealthy(shared))
	}
	mustStay(t, display, devices(2, 2), displayCount(n), time.Second)
}

func TestReloadRejectsAnInvalidConfiguration(t *testing.T) {
	nodeLog.start(t)
	config := newConfigFile(t, "multitenancy: 2")
	n := startNode(t)
	p := startPlugin(t, arguments{inventory: inventoryPath(twoGPUs), config: config.path})
	eventually(t, p, display, devices(4, 4), displayCount(n))
	config.change("multitenancy: many")
	mustStay(t, display, devices(4, 4), displayCount(n), time.Second)
	config.change("multitenancy: 3")
	eventually(t, p, display, devices(6, 6), displayCount(n))
}
