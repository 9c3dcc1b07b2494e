package cluster

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// The scheduler places the pod of README.md on the node object that `simulate` prints, once for each
// device, and a further one waits. KWOK, which only keeps such a node alive, is not part of the test: the
// test is shorter than the time after which the controller manager misses heartbeats. It does not run
// beside others: their DaemonSets for Windows would count the node.
func TestPodsArePlacedOnASimulatedNode(t *testing.T) {
	manifest, err := exec.Command(plugin, "simulate", "--output", "node", "--gpu", "T4", "--gpu", "AMD Radeon PRO W7900").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(manifest); err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	n := &node{t: t, name: "windows-gpu-0"}
	t.Cleanup(func() {
		if err := api.CoreV1().Nodes().Delete(context.Background(), n.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// As KWOK does.
	ready := []byte(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	_, err = api.CoreV1().Nodes().Patch(context.Background(), n.name, types.StrategicMergePatchType, ready, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	spec := readmePod(t).Spec
	create := func(name string) pod {
		p := n.createSpec(name, spec)
		t.Cleanup(func() {
			at := int64(0)
			if err := api.CoreV1().Pods(namespace).Delete(context.Background(), p.name, metav1.DeleteOptions{GracePeriodSeconds: &at}); err != nil {
				t.Error(err)
			}
		})
		return p
	}
	for _, name := range []string{"first", "second"} {
		p := create(name)
		eventually(t, "the node of pod "+p.name, n.name, func() string { return p.object().Spec.NodeName })
	}
	create("third").mustWait("Insufficient " + display)
}

// readmePod returns the pod of README.md.
func readmePod(t *testing.T) *v1.Pod {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of YAML, expected one with a pod", len(blocks))
	}
	object := &v1.Pod{}
	if err := yaml.UnmarshalStrict(blocks[0][1], object); err != nil {
		t.Fatal(err)
	}
	return object
}
