package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// A GPU that disappears cannot be requested any more, and the kubelet reports it to the pod that
// holds it, also if the kubelet does not run when it disappears. Both end when the GPU returns.
func TestRemovedGPUReturns(t *testing.T) {
	t.Parallel()
	n := startNode(t, "removal", "")
	pods := []pod{n.create("first", 1).mustRun(), n.create("second", 1).mustRun()}
	n.kubelet.kill()
	gpu := n.host.removeGPU(0)
	n.startKubelet()
	n.mustHave(2, 1)
	eventually(t, "unhealthy devices of pods", 1, func() int { return unhealthy(pods) })

	n.host.returnGPU(gpu)
	n.mustHave(2, 2)
	eventually(t, "unhealthy devices of pods", 0, func() int { return unhealthy(pods) })
	for _, p := range pods {
		if state := p.state(); state != "Running" {
			t.Errorf("pod %s: %s", p.name, state)
		}
	}
}

// A GPU is dropped when its grace period ends, also if a pod holds it. The pod runs on, and no other
// pod gets the GPU when it returns.
func TestRemovedGPUThatAPodHoldsIsDropped(t *testing.T) {
	t.Parallel()
	n := startNode(t, "drop", "removalGraceSeconds: 1")
	pods := []pod{n.create("first", 1).mustRun(), n.create("second", 1).mustRun()}
	gpu := n.host.removeGPU(0)
	n.mustHave(1, 1)
	n.host.returnGPU(gpu)
	n.mustHave(2, 2)
	for _, p := range pods {
		if state := p.state(); state != "Running" {
			t.Errorf("pod %s: %s", p.name, state)
		}
	}
	n.create("waiting", 1).mustWait("Insufficient " + display)
}

// unhealthy counts the devices that the kubelet reports as unhealthy in the status of pods.
func unhealthy(pods []pod) int {
	found := 0
	for _, p := range pods {
		for _, container := range p.object().Status.ContainerStatuses {
			for _, resource := range container.AllocatedResourcesStatus {
				for _, device := range resource.Resources {
					if device.Health != "Healthy" {
						found++
					}
				}
			}
		}
	}
	return found
}

// A new configuration changes the node's capacity, and waiting pods are placed.
func TestReloadChangesTheNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, "reload", "multitenancy: 1")
	running := n.create("running", 2).mustRun()
	waiting := n.create("waiting", 1).mustWait("Insufficient " + display)
	incarnation := running.incarnation()
	n.configure("multitenancy: 2")
	n.mustHave(4, 4)
	waiting.mustRun()
	if now := running.incarnation(); now != incarnation {
		t.Errorf("the running pod was %s, and is %s", incarnation, now)
	}
}

// The command of docs/upgrade.md removes the line of a resource that the kubelet does not know any more, and
// the kubelet does not write it again with its next report.
func TestLineOfARemovedResourceCanBeRemoved(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^kubectl (patch node NODE --subresource status --type json --patch) '(.*)'$`).FindSubmatch(page)
	if command == nil {
		t.Fatal("docs/upgrade.md has no command that removes the line of a resource")
	}
	n := startNode(t, "line", "")
	n.plugin.shutDown(t)
	// A kubelet forgets the resource five minutes after its plugin has ended, and writes 0, or without its
	// checkpoint, and leaves the line as it is.
	n.kubelet.kill()
	if err := os.Remove(filepath.Join(n.devicePlugins(), "kubelet_internal_checkpoint")); err != nil {
		t.Fatal(err)
	}
	n.startKubelet()
	lines := func() (found []string) {
		status := n.object().Status
		for _, list := range []v1.ResourceList{status.Capacity, status.Allocatable} {
			if quantity, has := list[display]; has {
				found = append(found, quantity.String())
			}
		}
		return found
	}
	if found := lines(); len(found) != 2 {
		t.Fatalf("the node has %s: %v", display, found)
	}
	words := strings.Fields(strings.ReplaceAll(string(command[1]), "NODE", n.name))
	patch := exec.Command(kubectl, append(words, string(command[2]))...)
	patch.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"))
	if output, err := patch.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if found := lines(); len(found) > 0 {
		t.Errorf("the node still has %s: %v", display, found)
	}
	// The kubelet reports another resource.
	n.configure("resourceName: example.com/gpu")
	n.startPlugin()
	eventually(t, "example.com/gpu", count{2, 2}, func() count { return n.count("example.com/gpu") })
	if found := lines(); len(found) > 0 {
		t.Errorf("the kubelet has written %s again: %v", display, found)
	}
	n.configure("")
	n.mustHave(2, 2)
}
