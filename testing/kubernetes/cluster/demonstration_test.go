package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pageCommands returns the commands with kubectl and helm in a section of docs/demonstration.md.
func pageCommands(t *testing.T, section string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/demonstration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return regexp.MustCompile(`(?m)^(?:kubectl|helm) .*$`).FindAllString(text, -1)
}

// The commands of docs/demonstration.md, on one node. The kubelet writes the ConfigMap with the inventory, and hands its changes on;
// the plugin and the feature discovery are processes, because no container runs here.
func TestDemonstration(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "demonstration")
	n := newNode(t, "demonstration", "")
	n.startRuntime()
	n.startKubelet()
	eventually(t, "the node object", n.name, func() string { return n.object().Name })
	manifest, err := os.ReadFile("../../../examples/demonstration/pod.yml")
	if err != nil {
		t.Fatal(err)
	}
	podFile := filepath.Join(t.TempDir(), "pod.yml")
	// The cluster has other nodes.
	here := strings.Replace(string(manifest), "kubernetes.io/os: linux", v1.LabelHostname+": "+n.name, 1)
	if err := os.WriteFile(podFile, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	changes := strings.NewReplacer("--all", n.name, "kube-system", i.namespace, "examples/demonstration/pod.yml", podFile)
	run := func(command string) string {
		t.Helper()
		shell := exec.Command("sh", "-ec", changes.Replace(command))
		shell.Dir = "../../.."
		shell.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"), "HOME="+filepath.Join(folder, "home"))
		output, err := i.run(shell)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	install, breaks := pageCommands(t, "Install"), pageCommands(t, "Break a GPU")
	if len(install) != 3 || len(breaks) != 3 {
		t.Fatalf("the page has the commands %q and %q", install, breaks)
	}
	for _, command := range install {
		run(command)
	}

	// The container of the DaemonSet.
	var inventories []string
	eventually(t, "the inventory in the pod of the plugin", 1, func() int {
		inventories, _ = filepath.Glob(filepath.Join(n.folder, "root/pods/*/volumes/kubernetes.io~configmap/inventory/inventory.yaml"))
		return len(inventories)
	})
	container := i.daemonSet("directx-device-plugin").Spec.Template.Spec.Containers[0]
	arguments := []string{}
	for _, word := range container.Args[1:] {
		word = strings.Replace(word, "/etc/directx-inventory/inventory.yaml", inventories[0], 1)
		arguments = append(arguments, strings.Replace(word, ":9400", "127.0.0.1:0", 1))
	}
	n.plugin = n.start("plugin.log", plugin, append(n.serve(), arguments...)...)
	n.startDiscovery(n.account(accountName), apiServerPort(), n.name)
	eventually(t, "node "+n.name+" is ready", true, n.ready)
	pod{t, "gpu"}.mustRun()
	defer pod{t, "gpu"}.delete()
	if with := n.recorded(pod{t, "gpu"}); len(with.Devices) != 0 || !containsVariable(with, "DIRECTX_VISIBLE_DEVICES") {
		t.Errorf("the runtime received %+v", with)
	}
	n.mustHaveConditions(usable)
	for _, condition := range n.object().Status.Conditions {
		isOurs := condition.Type == healthyCondition || condition.Type == readyCondition
		if isOurs && !strings.HasPrefix(condition.Message, "demonstration: ") {
			t.Errorf("the condition %s says %q", condition.Type, condition.Message)
		}
	}
	changed := time.Now()
	run(breaks[0])
	n.mustHave(2, 1)
	t.Logf("%.1f s from the change to the node object (the kubelet looks at its pods every 10 s, and by default every minute)", time.Since(changed).Seconds())
	run(breaks[1])
	n.mustHaveConditions("False UnhealthyDevices, True DevicesReady")
	t.Logf("%.1f s to the condition", time.Since(changed).Seconds())
	eventually(t, "the Event", 1, func() int { return n.eventCount("DirectXDeviceUnhealthy") })
	t.Logf("%.1f s to the Event", time.Since(changed).Seconds())
	if events := run(breaks[2]); !strings.Contains(events, "DirectXDeviceUnhealthy") {
		t.Errorf("kubectl prints\n%s", events)
	}
	if text := n.plugin.page(t, "/metrics"); !strings.Contains(text, `reason="Windows reports problem code 43"`) {
		t.Errorf("the metrics have no unhealthy device:\n%s", text)
	}
	run(strings.NewReplacer("problemCode: 0", "problemCode: 43", "problemCode: 43", "problemCode: 0").Replace(breaks[0]))
	n.mustHave(2, 2)
	n.mustHaveConditions(usable)
	if err := api.CoreV1().Namespaces().Delete(context.Background(), i.namespace, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func containsVariable(r recorded, name string) bool {
	for _, variable := range r.Envs {
		if variable.Key == name {
			return true
		}
	}
	return false
}
