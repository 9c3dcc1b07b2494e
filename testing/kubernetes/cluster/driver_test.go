package cluster

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// driverChanged is the taint of a node, and the annotation of a pod.
	driverChanged = labelPrefix + "driver-changed"
	oldDriver     = "31.0.15.2824"
	newDriver     = "32.0.15.5222"
)

// startWithOldDriver starts a node whose GPUs have the old driver, with a pod that has one of them,
// and directx-feature-discovery.
func startWithOldDriver(t *testing.T, name, config string) (*node, pod, account) {
	t.Helper()
	n := newNode(t, name, config)
	n.setDriver(oldDriver)
	n.startAll()
	running := n.create("running", 1).mustRun()
	a := n.account(accountName)
	n.startDiscovery(a, apiServerPort(), n.name, "--device-plugin-dir", n.devicePlugins())
	n.mustHaveLabels()
	return n, running, a
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

// A node is tainted while a pod uses a driver that was replaced, if the configuration demands it.
func TestReplacedDriverTaintsTheNode(t *testing.T) {
	t.Parallel()
	n, running, _ := startWithOldDriver(t, "driver-taint", "onDriverChange: taint")
	n.setDriver(newDriver)
	eventually(t, "taints", driverChanged, n.taints)
	eventually(t, "Events", "DirectXDeviceDriverChanged DirectXDriverOutdated", n.events)
	waiting := n.create("waiting", 1).mustWait("untolerated taint")

	eventually(t, "the pod in the output of status", true, func() bool {
		return strings.Contains(n.status(), running.name+" uses driver "+oldDriver+" of ")
	})

	n.configure("onDriverChange: ignore")
	eventually(t, "taints with onDriverChange: ignore", "", n.taints)
	waiting.mustRun()
	n.configure("onDriverChange: taint")
	eventually(t, "taints with onDriverChange: taint", driverChanged, n.taints)
	running.delete()
	eventually(t, "taints without the pod", "", n.taints)
}

// A pod that uses a driver that was replaced is annotated, if the configuration demands it.
func TestPodsWithAReplacedDriverAreAnnotated(t *testing.T) {
	t.Parallel()
	n, running, _ := startWithOldDriver(t, "driver-annotate", "")
	n.setDriver(newDriver)
	eventually(t, "Events", "DirectXDeviceDriverChanged DirectXDriverOutdated", n.events)
	later := n.create("later", 1).mustRun()
	if annotations := running.object().Annotations; annotations[driverChanged] != "" {
		t.Errorf("without onDriverChange, the pod has the annotations %v", annotations)
	}
	n.configure("onDriverChange: annotate")
	eventually(t, "annotation of "+running.name, oldDriver+" -> "+newDriver, func() string {
		return running.object().Annotations[driverChanged]
	})
	if annotations := later.object().Annotations; annotations[driverChanged] != "" {
		t.Errorf("the pod with the new driver has the annotations %v", annotations)
	}
	if taints := n.taints(); taints != "" {
		t.Errorf("the node has the taints %q", taints)
	}
}

// The account may set one annotation of the pods on its own node, and change nothing else of pods.
func TestAccountMayOnlyAnnotatePodsOfItsOwnNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, "own-pods", "")
	other := startNode(t, "other-pods", "")
	mine, theirs := n.create("mine", 0).mustRun(), other.create("theirs", 0).mustRun()
	unplaced := n.create("unplaced", 9).mustWait("Insufficient " + display)
	client := n.account(accountName).client(t)
	ctx := context.Background()
	patch := func(p pod, text string, subresources ...string) error {
		_, err := client.CoreV1().Pods(namespace).Patch(ctx, p.name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
		return err
	}
	annotation := `{"metadata": {"annotations": {"` + driverChanged + `": "1 -> 2"}}}`
	// The API server learns of a new policy or role within moments.
	eventually(t, "its annotation", "", func() string { return text(patch(mine, annotation)) })
	for _, refused := range []struct {
		name, message string
		err           error
	}{
		{"pod of another node", "only pods of the node that it runs on", patch(theirs, annotation)},
		{"pod without a node", "only pods of the node that it runs on", patch(unplaced, annotation)},
		{"another annotation", "only the annotation " + driverChanged, patch(mine, `{"metadata": {"annotations": {"`+labelPrefix+`note": "text"}}}`)},
		{"label", "only annotations of a pod", patch(mine, `{"metadata": {"labels": {"app": "other"}}}`)},
		{"deadline", "only annotations of a pod", patch(mine, `{"spec": {"activeDeadlineSeconds": 1}}`)},
		{"status", "cannot patch resource", patch(mine, `{"status": {"phase": "Failed"}}`, "status")},
		{"deletion", "cannot delete resource", client.CoreV1().Pods(namespace).Delete(ctx, mine.name, metav1.DeleteOptions{})},
	} {
		if err := refused.err; !errors.IsForbidden(err) && !errors.IsInvalid(err) || !strings.Contains(err.Error(), refused.message) {
			t.Errorf("%s: got %v, expected a refusal with %q", refused.name, err, refused.message)
		}
	}
	if err := patch(mine, `{"metadata": {"uid": "1-2", "annotations": {"`+driverChanged+`": "2 -> 3"}}}`); !errors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.uid:") {
		t.Errorf("a later pod with the same name: got %v, expected a refusal that names the UID", err)
	}
	if pods, err := client.CoreV1().Pods(v1.NamespaceAll).List(ctx, metav1.ListOptions{}); !errors.IsForbidden(err) {
		t.Errorf("the account lists %v, %v", pods, err)
	}
}
