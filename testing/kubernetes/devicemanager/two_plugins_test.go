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

// Up to 1.36, the kubelet marks a resource as stopped when the plugin that registered it last
// ends, although an earlier one is still connected. The earlier one registers again.
func TestReplacingPluginStartsAndStops(t *testing.T) {
	for _, how := range []ending{shutdown, kill} {
		t.Run(string(how), func(t *testing.T) {
			how.require(t)
			nodeLog.start(t)
			n := startNode(t)
			first := startPlugin(t, onlyDisplay())
			eventually(t, first, display, devices(2, 2), displayCount(n))
			lists := nodeLog.count(listed)
			second := startPlugin(t, onlyDisplay(), "--replace")
			eventually(t, second, "the device list of the second plugin", true, func() bool { return nodeLog.count(listed) > lists })

			second.end(how)
			mustServeAgain(t, n, first)
		})
	}
}

// A plugin of another maker registers the same resource and ends.
func TestForeignPluginStartsAndStops(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	first := startPlugin(t, onlyDisplay())
	eventually(t, first, display, devices(2, 2), displayCount(n))
	foreign := startForeignPlugin(t, "foreign-0", "foreign-1", "foreign-2")
	eventually(t, first, display, devices(3, 3), displayCount(n))
	mustWait(t, first)
	eventually(t, first, "status reports ready", false, statusSucceeds)

	foreign.stop()
	mustServeAgain(t, n, first)
}

// A plugin of another maker is the first: a second one waits, and with --replace it does not.
func TestForeignPluginIsFirst(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	foreign := startForeignPlugin(t, "foreign-0")
	eventually(t, nil, display, devices(1, 1), displayCount(n))
	waiting := startPlugin(t, onlyDisplay())
	mustWait(t, waiting)
	mustStay(t, display, devices(1, 1), displayCount(n), 2*time.Second)
	waiting.stop()

	replacing := startPlugin(t, onlyDisplay(), "--replace")
	eventually(t, replacing, display, devices(2, 2), displayCount(n))
	foreign.stop()
	mustServeAgain(t, n, replacing)
}

// Of several plugins with --replace, the one that started last serves. They do not register in
// turns.
func TestPluginsDoNotReplaceEachOtherForever(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	first := startPlugin(t, onlyDisplay(), "--replace")
	eventually(t, first, display, devices(2, 2), displayCount(n))
	for range 2 {
		registrations := nodeLog.count(registered)
		last := startPlugin(t, onlyDisplay(), "--replace")
		eventually(t, last, "a registration", true, func() bool { return nodeLog.count(registered) > registrations })
	}
	registrations := 0
	settle(t, "no registration and all GPUs", true, func() bool {
		before := registrations
		registrations = nodeLog.count(registered)
		return registrations == before && n.count(display) == devices(2, 2)
	}, 5*time.Second)
	n.mustAdmit(podFor("pod", display, 1))
}

// mustWait waits until a plugin has warned that it waits for another one.
func mustWait(t *testing.T, p *plugin) {
	t.Helper()
	eventually(t, p, "a warning that a plugin waits", true, func() bool { return waitingWarnings() > 0 })
}

// waitingWarnings counts the warnings of plugins that wait for another one.
func waitingWarnings() int {
	return nodeLog.count("waiting for another daemon") + nodeLog.count("waiting until it ends")
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
