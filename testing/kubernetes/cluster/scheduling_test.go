package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// The API server has the resources of a node as `simulate` predicts them.
func TestNodeHasThePredictedResources(t *testing.T) {
	t.Parallel()
	n := startNode(t, "resources", "multitenancy: 3\nresources:\n- name: example.com/first\n  match: {locationPath: PCIROOT(0)#PCI(1B00)}\n  multitenancy: 5\n")
	predicted := n.simulate().Resources
	if len(predicted) != 3 {
		t.Fatalf("simulate predicts %v", predicted)
	}
	for _, resource := range predicted {
		eventually(t, resource.Name, count{resource.Capacity, resource.Allocatable},
			func() count { return n.count(v1.ResourceName(resource.Name)) })
	}
	for name := range n.object().Status.Capacity {
		known := false
		for _, resource := range predicted {
			known = known || resource.Name == string(name)
		}
		switch name {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourcePods, v1.ResourceEphemeralStorage:
		default:
			if !known {
				t.Errorf("the node has the resource %s, which simulate does not predict", name)
			}
		}
	}
}

// The scheduler places pods while devices are free, and a waiting pod as soon as one is free
// again. The runtime receives what `simulate` predicts.
func TestPodsArePlacedRefusedAndRescheduled(t *testing.T) {
	t.Parallel()
	n := startNode(t, "placing", "runtimeMounts: always")
	predicted := n.simulate("first="+display+":1", "second="+display+":1", "third="+display+":1").Pods
	plain := n.create("plain", 0).mustRun()
	first := n.create("first", 1).mustRun()
	second := n.create("second", 1).mustRun()
	n.mustReceive(t, first, plain, predicted[0].Container)
	n.mustReceive(t, second, plain, predicted[1].Container)

	if predicted[2].Admitted {
		t.Errorf("simulate admits a third pod to two GPUs")
	}
	third := n.create("third", 1).mustWait("Insufficient " + display)
	first.delete()
	third.mustRun()
	n.mustReceive(t, third, plain, predicted[0].Container)
}

// As on Windows, the kubelet asks the plugin when it creates a container. If the plugin refuses, the
// container waits for the reason that `simulate` predicts. A pod that the scheduler did not place
// fails if the node has too few devices.
func TestRefusedPodsShowTheReason(t *testing.T) {
	t.Parallel()
	n := startNode(t, "refused", "multiDevice: reject")
	predicted := n.simulate("two=" + display + ":2").Pods[0]
	if predicted.Admitted {
		t.Errorf("simulate admits a pod with two GPUs")
	}
	two := n.create("two", 2)
	eventually(t, "the container of pod "+two.name, predicted.Reason, two.waiting)

	spec := n.podSpec(3)
	spec.NodeName = n.name
	three := n.createSpec("three", spec)
	eventually(t, "pod "+three.name, "Failed (OutOf"+display+")", three.state)
}
