package cluster

import (
	"os/exec"
	"strings"
	"testing"
)

const (
	oldDriver = "31.0.15.2824"
	newDriver = "32.0.15.5222"
)

// startWithOldDriver starts a node whose GPUs have the old driver, with a pod that has one of them,
// and directx-feature-discovery.
func startWithOldDriver(t *testing.T, name string) (*node, pod) {
	t.Helper()
	n := newNode(t, name, "")
	n.setDriver(oldDriver)
	n.startAll()
	running := n.create("running", 1).mustRun()
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name)
	n.mustHaveLabels()
	return n, running
}

// setDriver replaces the driver of both GPUs, which keep their folder.
func (n *node) setDriver(version string) {
	n.t.Helper()
	n.host.adapter(1)["driverVersion"] = version
	n.host.set(0, "driverVersion", version)
}

// status returns what the plugin says about pods that use an earlier driver.
func (n *node) status() string {
	n.t.Helper()
	output, _ := exec.Command(plugin, "status", "--device-plugin-dir", n.devicePlugins()).Output()
	lines := []string{}
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "uses driver") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// A pod that uses a driver that was replaced is an Event, and the plugin names it. A pod that
// starts later gets the new driver. Nothing else happens in the cluster.
func TestPodsWithAReplacedDriverAreReported(t *testing.T) {
	t.Parallel()
	n, running := startWithOldDriver(t, "driver")
	n.setDriver(newDriver)
	eventually(t, "Events", "DirectXDeviceDriverChanged DirectXDriverOutdated", n.events)
	later := n.create("later", 1).mustRun()

	eventually(t, "the pod in the output of status", true, func() bool {
		return strings.Contains(n.status(), running.name+" uses driver "+oldDriver+" of ")
	})
	if status := n.status(); strings.Contains(status, later.name) {
		t.Errorf("the pod with the new driver is in the output of status:\n%s", status)
	}
	if taints := n.taints(); taints != "" {
		t.Errorf("the node has the taints %q", taints)
	}
	running.delete()
	eventually(t, "the output of status without the pod", "", n.status)
}
