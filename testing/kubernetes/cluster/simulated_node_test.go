package cluster

import (
	"context"
	"os/exec"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The scheduler places pods on the node object that `simulate` prints, as on a node with its devices.
// KWOK, which only keeps such a node alive, is not part of the test. It does not run beside others:
// their DaemonSets for Windows would count the node.
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
	// Other tests wait for a kubelet meanwhile.
	eventually(t, "the account of pods", nil, func() error {
		_, err := api.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		return err
	})
	create := func(name string) pod {
		spec := n.podSpec(1)
		spec.OS = &v1.PodOS{Name: v1.Windows}
		spec.NodeSelector = map[string]string{v1.LabelOSStable: "windows", labelPrefix + "count": "2"}
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
