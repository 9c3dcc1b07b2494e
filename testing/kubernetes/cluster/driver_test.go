package cluster

import (
	"os"
	"regexp"
	"testing"
)

const (
	oldDriver = "31.0.15.2824"
	newDriver = "32.0.15.5222"
)

// replacedDriver is the line of the plugin's log about a driver that was replaced.
var replacedDriver = regexp.MustCompile(`the driver of a device was replaced .*pods="([^"]+)"`)

// replacedDriverPods returns the pods that the plugin's log names as users of a driver that was replaced.
func (n *node) replacedDriverPods() string {
	n.t.Helper()
	log, err := os.ReadFile(n.plugin.log)
	if err != nil {
		n.t.Fatal(err)
	}
	found := replacedDriver.FindSubmatch(log)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// The log of the plugin names the pod that holds a device whose driver is replaced, as the kubelet reports it. Nothing else happens in
// the cluster.
func TestPodsWithAReplacedDriverAreLogged(t *testing.T) {
	t.Parallel()
	n := newNode(t, "driver", "")
	n.setDriver(oldDriver)
	n.startAll()
	running := n.create("running", 1).mustRun()
	eventually(t, "holders", running.name, n.holders)
	n.setDriver(newDriver)
	eventually(t, "the pods in the log", "default/"+running.name, n.replacedDriverPods)
	if taints := n.taints(); taints != "" {
		t.Errorf("the node has the taints %q", taints)
	}
}

// setDriver replaces the driver of both GPUs, which keep their folder.
func (n *node) setDriver(version string) {
	n.t.Helper()
	n.host.adapter(1)["driverVersion"] = version
	n.host.set(0, "driverVersion", version)
}
