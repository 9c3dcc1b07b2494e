package kubelet

import (
	"os/exec"
	"testing"
	"time"
)

const (
	// listed is what every kubelet logs when it receives a device list.
	listed = "State pushed for device plugin"
	// registered is what the program logs when the kubelet has accepted its registration.
	registered = "registered with kubelet"
)

// onlyDisplay are the arguments of plugins that advertise two GPUs and nothing else.
func onlyDisplay() arguments {
	return arguments{inventory: inventoryPath(twoGPUs), driverModels: []string{"wddm"}}
}

// A second plugin waits, so it disturbs nothing when it starts, when it ends and while it runs.
func TestSecondPluginWaits(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	first := startPlugin(t, onlyDisplay())
	eventually(t, first, display, devices(2, 2), displayCount(n))
	for i, how := range []ending{ordinary(), kill} {
		second := startPlugin(t, onlyDisplay())
		eventually(t, second, "a warning that a plugin waits", true, func() bool { return waitingWarnings() > i })
		mustStay(t, display, devices(2, 2), displayCount(n), time.Second)
		second.end(how)
	}
	mustStay(t, display, devices(2, 2), displayCount(n), 2*time.Second)
	n.mustAdmit(podFor("pod", display, 1))
	if got := nodeLog.count(registered); got != 1 {
		t.Errorf("%d registrations, expected 1", got)
	}
}

// The waiting plugin registers when the first one is gone, also if that one was killed and left
// its socket behind.
func TestWaitingPluginTakesOver(t *testing.T) {
	for _, how := range []ending{shutdown, kill} {
		t.Run(string(how), func(t *testing.T) {
			how.require(t)
			nodeLog.start(t)
			n := startNode(t)
			first := startPlugin(t, onlyDisplay())
			eventually(t, first, display, devices(2, 2), displayCount(n))
			second := startPlugin(t, onlyDisplay())
			mustWait(t, second)
			before := n.mustAdmit(podFor("before", display, 1))

			first.end(how)
			took := eventually(t, second, "a second registration", true, func() bool { return nodeLog.count(registered) > 1 })
			t.Logf("registered %v after the first plugin was %s", took, how)
			mustStayRegistered(t, n, second)
			mustBeReady(t)
			mustNotShareDevice(t, n, before, n.mustAdmit(podFor("after", display, 1)))
		})
	}
}

// A plugin with another configuration, under which the same GPUs have another name, waits as well:
// the kubelet would give a GPU to a pod of each resource.
func TestPluginWithOtherNamesWaits(t *testing.T) {
	const shared = display + ".shared"
	nodeLog.start(t)
	n := startNode(t)
	first := startPlugin(t, onlyDisplay())
	eventually(t, first, display, devices(2, 2), displayCount(n))
	sharing := onlyDisplay()
	sharing.config = writeConfig(t, "multitenancy: 4\nrenameShared: true")
	second := startPlugin(t, sharing)
	mustWait(t, second)
	sharedCount := func() count { return n.count(shared) }
	mustStay(t, shared, count{}, sharedCount, time.Second)
	n.mustAdmit(podFor("pod", display, 1))

	first.end(kill)
	eventually(t, second, shared, devices(8, 8), sharedCount)
	settle(t, display, devices(2, 0), displayCount(n), time.Second)
	n.mustAdmit(podFor("shared", shared, 1))
}

// A plugin of another maker, which does not know the lock, registers the same resource before this
// one does, and ends.
func TestForeignPluginIsFirst(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	foreign := startForeignPlugin(t, "foreign-0")
	eventually(t, nil, display, devices(1, 1), displayCount(n))
	p := startPlugin(t, onlyDisplay())
	eventually(t, p, display, devices(2, 2), displayCount(n))
	foreign.stop()
	mustServeAgain(t, n, p)
}

// mustWait waits until a plugin has warned that it waits for another one.
func mustWait(t *testing.T, p *plugin) {
	t.Helper()
	eventually(t, p, "a warning that a plugin waits", true, func() bool { return waitingWarnings() > 0 })
}

// waitingWarnings counts the warnings of plugins that wait for another one.
func waitingWarnings() int {
	return nodeLog.count("waiting for another daemon")
}

// mustServeAgain waits until the plugin serves the GPUs again, and fails unless it continues to:
// through a change of its list, and for a pod.
func mustServeAgain(t *testing.T, n *node, p *plugin) {
	t.Helper()
	mustStayRegistered(t, n, p)
	mustBeReady(t)
	n.mustAdmit(podFor("pod", display, 1))
}

// mustBeReady waits until `status` succeeds.
func mustBeReady(t *testing.T) {
	t.Helper()
	eventually(t, nil, "status reports ready", true, statusSucceeds)
}

func statusSucceeds() bool { return exec.Command(program, "status").Run() == nil }
