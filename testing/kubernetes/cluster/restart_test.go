package cluster

import (
	"os"
	"strings"
	"testing"
)

// After a reboot, a kubelet on Windows starts the containers of a pod again with what the plugin
// returned before the reboot, and does not wait for the plugin.
func TestRebootedNodeUsesEarlierAllocations(t *testing.T) {
	t.Parallel()
	n := startNode(t, "reboot", "")
	plain := n.create("plain", 0).mustRun()
	running := n.create("running", 1).mustRun()
	given := n.container(running, plain).text()
	n.reboot()
	eventually(t, "restarts of pod "+running.name, 1, running.restarts)
	running.mustRun()
	if got := n.container(running, plain).text(); got != given {
		t.Errorf("after the reboot, the runtime received\n%s\nexpected\n%s", got, given)
	}
	n.startPlugin()
	n.mustHave(2, 2)
	n.create("second", 1).mustRun()
	n.create("late", 1).mustWait("Insufficient " + display)
}

// With the feature gate WindowsCPUAndMemoryAffinity, the kubelet checks the devices of pods when
// it starts. If the plugin has not registered yet, the pods fail, and their controller has to
// create others.
func TestRebootedNodeWithAffinityFailsPods(t *testing.T) {
	t.Parallel()
	n := newNode(t, "reboot-affinity", "")
	n.kubeletOptions = []string{"--affinity"}
	n.startAll()
	running := n.create("running", 1).mustRun()
	n.reboot()
	eventually(t, "pod "+running.name, "Failed (UnexpectedAdmissionError)", running.state)
	n.startPlugin()
	n.mustHave(2, 2)
	n.create("replacement", 2).mustRun()
}

// hasKubeletPanicked says that the kubelet has ended because two allocations overlapped, as on Windows:
// its device manager does not lock a map (kubernetes/kubernetes#136021).
func (n *node) hasKubeletPanicked() bool {
	n.t.Helper()
	if n.kubelet.alive() == nil {
		return false
	}
	log, err := os.ReadFile(n.kubelet.log)
	if err != nil || !strings.Contains(string(log), "devicemanager.(*ManagerImpl).Allocate") {
		n.t.Fatalf("%v, %v", n.kubelet.alive(), err)
	}
	return true
}

// reboot kills the node's programs and starts its runtime, which then has no containers, and its
// kubelet, but not the plugin.
func (n *node) reboot() {
	n.t.Helper()
	n.plugin.kill()
	n.kubelet.kill()
	n.runtime.kill()
	n.startRuntime()
	n.startKubelet()
}
