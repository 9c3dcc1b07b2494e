package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// labelPrefix is the prefix of the labels, taints and so on that belong to our programs.
	labelPrefix = "directx.microsoft.com/"
	// The conditions that directx-feature-discovery sets.
	healthyCondition v1.NodeConditionType = "DirectXDevicesHealthy"
	readyCondition   v1.NodeConditionType = "DirectXDevicesReady"
	// usable are the conditions of a node whose devices are healthy and can be used.
	usable = "True AllHealthy, True DevicesReady"
)

// patch changes the node object with the administrator's account.
func (n *node) patch(text string) {
	n.t.Helper()
	_, err := api.CoreV1().Nodes().Patch(context.Background(), n.name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
}

// labels returns the labels of the node with our prefix.
func (n *node) labels() string {
	n.t.Helper()
	return labelLines(n.object().Labels)
}

// labelLines returns the labels with our prefix as lines, as `--print` prints them.
func labelLines(labels map[string]string) string {
	lines := []string{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(name, labelPrefix) {
			lines = append(lines, name+"="+labels[name])
		}
	}
	return strings.Join(lines, "\n")
}

// mustHaveLabels waits until the node has the labels that `simulate` predicts, and returns them.
func (n *node) mustHaveLabels() string {
	n.t.Helper()
	expected := labelLines(n.simulate().Labels)
	if !strings.Contains(expected, labelPrefix+"count=") {
		n.t.Fatalf("simulate predicts no labels: %s", expected)
	}
	eventually(n.t, "labels", expected, n.labels)
	return expected
}

// conditions returns status and reason of the conditions about devices: whether they are healthy,
// and whether pods can use them.
func (n *node) conditions() string {
	n.t.Helper()
	return conditionTexts(n.object())
}

func conditionTexts(object *v1.Node) string {
	texts := []string{}
	for _, kind := range []v1.NodeConditionType{healthyCondition, readyCondition} {
		text := "none"
		for _, condition := range object.Status.Conditions {
			if condition.Type == kind {
				text = fmt.Sprintf("%s %s", condition.Status, condition.Reason)
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// mustHaveConditions waits until the node has these conditions.
func (n *node) mustHaveConditions(expected string) {
	n.t.Helper()
	eventually(n.t, "conditions", expected, n.conditions)
}

// taints returns the keys of the node's taints, without those of the controller manager.
func (n *node) taints() string {
	n.t.Helper()
	keys := []string{}
	for _, taint := range n.object().Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			keys = append(keys, taint.Key)
		}
	}
	return strings.Join(keys, " ")
}

// events returns the reasons of the Events about the node's devices, sorted, each once.
func (n *node) events() string {
	n.t.Helper()
	events, err := api.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	reasons := []string{}
	for _, event := range events.Items {
		if event.Regarding.Name == n.name && event.ReportingController == writer {
			reasons = append(reasons, event.Reason)
		}
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), " ")
}

// eventCount returns how often an Event with this reason was reported. It is one object.
func (n *node) eventCount(reason string) int {
	n.t.Helper()
	events, err := api.EventsV1().Events("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	objects, count := 0, 0
	for _, event := range events.Items {
		if event.Regarding.Name == n.name && event.Reason == reason {
			objects++
			count = 1
			if event.Series != nil {
				count = int(event.Series.Count)
			}
		}
	}
	if objects > 1 {
		n.t.Fatalf("%s is %d objects", reason, objects)
	}
	return count
}
