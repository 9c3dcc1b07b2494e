package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// startupTaint is removed from a node when its devices can be used.
const startupTaint = labelPrefix + "not-ready"

// startDiscovery starts directx-feature-discovery as a container with an account, with the API
// server at this port. The name is that of the node object that it changes.
func (n *node) startDiscovery(a account, port, name string, arguments ...string) *process {
	n.t.Helper()
	words := []string{
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + port,
		"CONTAINER_SANDBOX_MOUNT_POINT=" + a.root, "NODE_NAME=" + name,
		discovery, "--device-plugin-dir", n.devicePlugins(),
	}
	// `env` replaces itself by the program.
	n.discovery = n.start("discovery.log", "env", append(words, arguments...)...)
	return n.discovery
}

// printedLabels returns what `--print` prints for the plugin on the node.
func (n *node) printedLabels() string {
	n.t.Helper()
	output, err := exec.Command(discovery, "--print", "--device-plugin-dir", n.devicePlugins()).Output()
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// The labels, the conditions and the Events of a node follow its devices, with the permissions of
// the manifest. Nothing is written while nothing changes.
func TestDiscoveryFollowsTheDevices(t *testing.T) {
	t.Parallel()
	n := startNode(t, "discovery", "")
	n.host.set(0, "driverVersion", "31.0.15.2824")
	a := n.account(accountName)
	n.patch(`{"metadata": {"labels": {"example.com/team": "graphics"}}}`)
	p := n.startDiscovery(a, apiServerPort(), n.name, "--listen=127.0.0.1:0")
	labels := n.mustHaveLabels()
	if printed := n.printedLabels(); printed != labels {
		t.Errorf("--print prints\n%s\nexpected\n%s", printed, labels)
	}
	n.mustHaveConditions(usable)
	eventually(t, "a watch of the node", true, func() bool { return slices.Contains(n.requests(accountName), "watch nodes") })
	for path, expected := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if text := p.page(t, path); text != expected {
			t.Errorf("a probe of %s receives %q", path, text)
		}
	}
	if text := p.page(t, "/"); !strings.Contains(text, "<h1>directx-feature-discovery</h1>") {
		t.Errorf("the first page is %q", text)
	}
	for _, purpose := range []string{"labels", "condition", "watch"} {
		if text := p.page(t, "/metrics"); !strings.Contains(text, `directx_feature_discovery_last_success_timestamp_seconds{purpose="`+purpose+`"} `) {
			t.Errorf("the metrics have no success of %s:\n%s", purpose, text)
		}
	}
	atStart := n.requests(accountName)
	t.Logf("the requests at the start: %q", atStart)
	// The kubelet changes the node object in this time.
	time.Sleep(2 * statusPeriod)
	isWrite := func(name string) bool { return strings.HasPrefix(name, "patch ") }
	if now := n.requests(accountName)[len(atStart):]; slices.ContainsFunc(now, isWrite) {
		t.Errorf("without a change, there are the requests %q", now)
	}

	n.host.setProblem(0, 43)
	n.mustHaveConditions("False UnhealthyDevices, True DevicesReady")
	eventually(t, "Events", "DirectXDeviceUnhealthy", n.events)
	n.host.setProblem(0, 0)
	n.mustHaveConditions(usable)
	eventually(t, "Events", "DirectXDeviceRecovered DirectXDeviceUnhealthy", n.events)
	n.host.setProblem(0, 43)
	eventually(t, "the count of the Event", 2, func() int { return n.eventCount("DirectXDeviceUnhealthy") })
	n.host.setProblem(0, 0)

	n.host.set(0, "driverVersion", "32.0.15.5222")
	eventually(t, "Events", "DirectXDeviceDriverChanged DirectXDeviceRecovered DirectXDeviceUnhealthy", n.events)
	n.configure("multitenancy: 4")
	n.mustHaveLabels()
	// Whoever else sets one of the labels, or removes it, does not win.
	n.patch(`{"metadata": {"labels": {"` + labelPrefix + `count": "7"}}}`)
	n.mustHaveLabels()
	if team := n.object().Labels["example.com/team"]; team != "graphics" {
		t.Errorf("another label of the node is now %q", team)
	}

	n.mustCordon()
	p.shutDown(t)
	n.uninstall()
	mustBe := func(what, expected, found string) {
		if found != expected {
			t.Errorf("%s after the documented commands: %q, expected %q", what, found, expected)
		}
	}
	mustBe("labels", "", n.labels())
	mustBe("conditions", "none, none", n.conditions())
	mustBe("another label", "graphics", n.object().Labels["example.com/team"])
}

// mustCordon takes one GPU and then the other one out of service with the annotation of the node, and
// returns them. A pod gets the other GPU and keeps it, and a restart of the plugin changes nothing.
func (n *node) mustCordon() {
	n.t.Helper()
	n.configure("")
	n.mustHave(2, 2)
	annotate := func(value string) {
		n.patch(`{"metadata": {"annotations": {"` + labelPrefix + `cordoned-devices": ` + value + `}}}`)
	}
	annotate(`"PCIROOT(0)#PCI(1B00)"`)
	n.mustHave(2, 1)
	running := n.create("running", 1).mustRun()
	incarnation := running.incarnation()
	second, _ := json.Marshal(n.host.adapter(1)["pnp"].(map[string]any)["id"])
	annotate(`"PCIROOT(0)#PCI(1B00), PCIROOT(9)\n` + string(second[1:]))
	n.mustHave(2, 0)
	waiting := n.create("waiting", 1).mustWait("Insufficient " + display)
	// A device that is out of service on purpose is no fault.
	n.mustHaveConditions("True CordonedDevices, False NoHealthyDevices")
	eventually(n.t, "the Event of a wrong name", 1, func() int { return n.eventCount("DirectXDeviceNotFound") })
	const reason = "cordoned: taken out of service by the node's annotation"
	if text := n.plugin.page(n.t, "/metrics"); strings.Count(text, `reason="`+reason) != 2 {
		n.t.Errorf("the metrics do not name two devices that are out of service:\n%s", text)
	}

	n.plugin.kill()
	n.startPlugin()
	eventually(n.t, "lines of status", 2, func() int {
		output, err := exec.Command(plugin, "status", "--device-plugin-dir", n.devicePlugins()).Output()
		if err != nil {
			return 0
		}
		return strings.Count(string(output), reason)
	})
	time.Sleep(2 * statusPeriod)
	n.mustHave(2, 0)

	// The scheduler subtracts the running pod from the healthy devices, although it has the other one.
	annotate(string(second))
	n.mustHave(2, 1)
	waiting.mustWait("Insufficient " + display)
	annotate("null")
	waiting.mustRun()
	n.mustHave(2, 2)
	n.mustHaveConditions(usable)
	if now := running.incarnation(); now != incarnation {
		n.t.Errorf("the running pod was %s, and is %s", incarnation, now)
	}
}

// uninstall does what the commands of docs/upgrade.md do, with their texts.
func (n *node) uninstall() {
	n.t.Helper()
	page, err := os.ReadFile("../../../docs/upgrade.md")
	if err != nil {
		n.t.Fatal(err)
	}
	request := func(pattern string, kind types.PatchType, options metav1.PatchOptions, subresources ...string) {
		found := regexp.MustCompile(pattern).FindSubmatch(page)
		if found == nil {
			n.t.Fatalf("docs/upgrade.md has no `%s`", pattern)
		}
		text, err := yaml.YAMLToJSON(bytes.ReplaceAll(found[1], []byte("NODE"), []byte(n.name)))
		if err != nil {
			n.t.Fatalf("%s: %v", found[1], err)
		}
		_, err = api.CoreV1().Nodes().Patch(context.Background(), n.name, kind, text, options, subresources...)
		if err != nil {
			n.t.Fatalf("%s: %v", text, err)
		}
	}
	request("(?s)```yaml(.*?)```.*apply --server-side --field-manager "+writer+" --filename node.yaml",
		types.ApplyPatchType, metav1.PatchOptions{FieldManager: writer})
	request("(?m)patch node NODE --subresource status --patch '(.*)'$", types.StrategicMergePatchType, metav1.PatchOptions{}, "status")
}

// A node that registers with the startup taint gets pods once they can use its devices. Cleanup removes
// what the program has written, and the taint if it is there.
func TestStartupTaintIsRemovedWhenDevicesCanBeUsed(t *testing.T) {
	t.Parallel()
	n := newNode(t, "taint", "")
	n.startRuntime()
	n.startKubelet()
	eventually(t, "the node object", n.name, func() string { return n.object().Name })
	taints := `{"spec": {"taints": [{"key": "` + startupTaint + `", "effect": "NoSchedule"}, {"key": "example.com/other", "effect": "PreferNoSchedule"}]}}`
	n.patch(taints)
	p := n.startDiscovery(n.account(accountName), apiServerPort(), n.name, "--startup-taint", startupTaint)
	waiting := n.create("waiting", 1).mustWait("untolerated taint")
	time.Sleep(2 * statusPeriod)
	if found := n.labels() + n.conditions(); found != "none, none" {
		t.Errorf("the node without a plugin has %q", found)
	}
	n.mustHaveStartupTaint()
	n.host.setProblem(0, 43)
	n.host.setProblem(1, 43)
	n.startPlugin()
	n.mustHaveLabels()
	n.mustHaveConditions("False UnhealthyDevices, False NoHealthyDevices")
	time.Sleep(2 * statusPeriod)
	n.mustHaveStartupTaint()
	n.host.setProblem(1, 0)
	eventually(t, "taints", "example.com/other", n.taints)
	waiting.mustRun()

	p.shutDown(t)
	n.patch(taints)
	for _, expected := range []string{"removed labels, conditions, startup taint", "nothing to remove"} {
		output, err := exec.Command(discovery, "cleanup", "--node", n.name, "--kubeconfig", filepath.Join(folder, "kubeconfig")).CombinedOutput()
		if err != nil || string(output) != n.name+": "+expected+"\n" {
			t.Errorf("cleanup: %v: %s", err, output)
		}
	}
	if n.labels() != "" || n.conditions() != "none, none" || n.taints() != "example.com/other" {
		t.Errorf("after cleanup: labels %q, conditions %q, taints %q", n.labels(), n.conditions(), n.taints())
	}
}

func (n *node) mustHaveStartupTaint() {
	n.t.Helper()
	if taints := n.taints(); !strings.Contains(taints, startupTaint) {
		n.t.Errorf("the node without a usable device has the taints %q", taints)
	}
}
