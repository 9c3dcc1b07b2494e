package cluster

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// observed starts a node with two usable GPUs and the feature discovery, and returns its labels.
func observed(t *testing.T, name string) (*node, string) {
	t.Helper()
	n := startNode(t, name, "")
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name)
	labels := n.mustHaveLabels()
	n.mustHaveConditions(usable)
	return n, labels
}

// mustBecome waits until the node has these conditions, and fails if its labels change meanwhile.
func (n *node) mustBecome(conditions, labels string) time.Duration {
	n.t.Helper()
	return eventually(n.t, "conditions", conditions, func() string {
		object := n.object()
		if found := labelLines(object.Labels); object.Name != "" && found != labels {
			n.t.Fatalf("the labels have become\n%s\nexpected\n%s", found, labels)
		}
		return conditionTexts(object)
	})
}

// mustReportOutage waits until the conditions are unknown for this reason, which takes a minute, and
// until an Event reports it.
func (n *node) mustReportOutage(reason, labels string) {
	n.t.Helper()
	n.t.Logf("%s is reported after %v", reason, n.mustBecome("Unknown "+reason+", Unknown "+reason, labels))
	eventually(n.t, "the Event", "DirectX"+reason, n.events)
}

// mustReturn waits until the devices can be used again. The outage remains one Event.
func (n *node) mustReturn(reason, labels string) {
	n.t.Helper()
	n.mustBecome(usable, labels)
	if count := n.eventCount("DirectX" + reason); count != 1 {
		n.t.Errorf("%s was reported %d times", reason, count)
	}
}

// The labels of a plugin that was killed stay. Pods cannot use its devices, and after a minute nothing
// is known of them.
func TestKilledPluginIsReported(t *testing.T) {
	t.Parallel()
	n, labels := observed(t, "killed")
	n.plugin.kill()
	n.mustBecome("True AllHealthy, False NotAllocatable", labels)
	n.mustReportOutage("PluginNotRunning", labels)
	n.startPlugin()
	n.mustReturn("PluginNotRunning", labels)
}

// Pods can use the devices of a plugin that hangs for less than a minute.
func TestHangingPluginIsReported(t *testing.T) {
	t.Parallel()
	n, labels := observed(t, "hanging")
	n.plugin.signal(t, syscall.SIGSTOP)
	start := time.Now()
	n.mustReportOutage("PluginNotResponding", labels)
	if elapsed := time.Since(start); elapsed < 50*time.Second {
		t.Errorf("the conditions are unknown after %v, expected a minute", elapsed)
	}
	n.plugin.signal(t, syscall.SIGCONT)
	n.mustReturn("PluginNotResponding", labels)
}

// A plugin whose report has another format may serve devices, but this version cannot tell which.
func TestPluginOfAnotherVersionIsReported(t *testing.T) {
	t.Parallel()
	n, labels := observed(t, "version")
	n.plugin.shutDown(t)
	socket := filepath.Join(n.devicePlugins(), "wddm-1.sock")
	other := fakePlugin(t, socket, display, `{"format": 2, "version": "9.0.0", "node": "elsewhere"}`)
	n.mustReportOutage("PluginVersion", labels)
	other.Stop()
	n.startPlugin()
	n.mustReturn("PluginVersion", labels)
}

// The labels follow a plugin that is replaced by one with another configuration.
func TestLabelsFollowTheNextPlugin(t *testing.T) {
	t.Parallel()
	n, before := observed(t, "next")
	for _, configuration := range []string{"multitenancy: 4", "multitenancy: 3\nrenameShared: true", ""} {
		n.plugin.shutDown(t)
		n.configure(configuration)
		start := time.Now()
		n.startPlugin()
		n.mustHaveLabels()
		t.Logf("with %q, the labels follow after %v", configuration, time.Since(start))
		n.mustHaveConditions(usable)
	}
	if after := n.labels(); after != before {
		t.Errorf("the labels are\n%s\nexpected\n%s", after, before)
	}
	// The devices are `.shared` for a while. A restart itself is no Event.
	eventually(t, "Events", "DirectXDeviceMoved", n.events)
}

// Of two plugins on a node, one ends. Its devices stay in the labels, as the kubelet keeps them in the
// capacity of the node. A unit test shows that this ends after five minutes.
func TestOneOfTwoPluginsEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t, "two-plugins", "")
	n.host.returnGPU(npu(t))
	n.startRuntime()
	n.startKubelet()
	start := func(model string) *process {
		return n.startDaemon(model+".log", nil, []string{"--driver-model", model})
	}
	start("wddm")
	second := start("mcdm")
	eventually(t, "node "+n.name+" is ready", true, n.ready)
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name)
	labels := n.mustHaveLabels()
	n.mustHaveConditions(usable)
	second.kill()
	n.mustBecome("True AllHealthy, False NotRegistered", labels)
	time.Sleep(5 * time.Second)
	n.mustBecome("True AllHealthy, False NotRegistered", labels)
	if found := n.count(compute); found != (count{1, 0}) {
		t.Errorf("the node has of %s %s", compute, found)
	}
	start("mcdm")
	n.mustBecome(usable, labels)
	if events := n.events(); events != "" {
		t.Errorf("the end of one plugin is reported as %s", events)
	}
}
