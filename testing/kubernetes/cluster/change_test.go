package cluster

import "testing"

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
