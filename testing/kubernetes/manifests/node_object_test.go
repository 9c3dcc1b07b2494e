package manifests

import (
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/registry/core/node"
)

// TestNodeObject checks that the API server accepts the node object that `simulate` prints for
// every recorded host, and reads the numbers and labels of it as text and quantities.
func TestNodeObject(t *testing.T) {
	inventories, err := filepath.Glob(inventoryPath("*.yaml"))
	if err != nil || len(inventories) == 0 {
		t.Fatalf("no inventories: %v", err)
	}
	for _, inventory := range inventories {
		output, err := exec.Command(program, "simulate", "--output", "node", "--gfd-labels", "--inventory", inventory).Output()
		if err != nil {
			t.Fatalf("%s: %v", inventory, err)
		}
		object, _, err := strict.Decode(output, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v\n%s", inventory, err, output)
		}
		found, ok := object.(*corev1.Node)
		if !ok {
			t.Fatalf("%s: %T", inventory, object)
		}
		if err := create(node.Strategy, found); err != nil {
			t.Errorf("%s: %v\n%s", inventory, err, output)
		}
		if len(found.Spec.Taints) > 0 || found.Status.NodeInfo.OperatingSystem != "windows" {
			t.Errorf("%s: Windows pods are not placed:\n%s", inventory, output)
		}
		for name, capacity := range found.Status.Capacity {
			if allocatable := found.Status.Allocatable[name]; allocatable.Cmp(capacity) > 0 {
				t.Errorf("%s: %v of %v %s are allocatable", inventory, &allocatable, &capacity, name)
			}
		}
	}
}
