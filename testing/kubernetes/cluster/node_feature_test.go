package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// nodeNameLabel names the node that a NodeFeature object is about.
const nodeNameLabel = "nfd.node.kubernetes.io/node-name"

// With --node-feature, the labels are in an object of Node Feature Discovery, which sets them on
// the node. Until the cluster knows such objects, only the labels are missing.
func TestLabelsForNodeFeatureDiscovery(t *testing.T) {
	t.Parallel()
	n := startNode(t, "feature", "")
	a := n.account(accountName)
	before := n.startDiscovery(a, apiServerPort(), n.name)
	n.mustHaveLabels()
	before.shutDown(t)

	p := n.startDiscovery(a, apiServerPort(), n.name, "--node-feature")
	p.mustLog(t, "install Node Feature Discovery")
	eventually(t, "labels", "", n.labels)
	n.host.setProblem(0, 43)
	eventually(t, string(deviceCondition), "False UnhealthyDevices", n.condition)
	eventually(t, "Events", "DirectXDeviceUnhealthy", n.events)

	if err := applyManifest("node-feature-crd.yml"); err != nil {
		t.Fatal(err)
	}
	features := nodeFeatures(t, administrator)
	mustRequestLabels := func() {
		t.Helper()
		eventually(t, "requested labels", n.printedLabels(), func() string { return requestedLabels(features, n.featureName()) })
	}
	mustRequestLabels()
	object, err := features.Get(context.Background(), n.featureName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if name := object.GetLabels()[nodeNameLabel]; name != n.name {
		t.Errorf("the object is about the node %q", name)
	}
	owners := object.GetOwnerReferences()
	if len(owners) != 1 || owners[0].Kind != "Node" || owners[0].UID != n.object().UID {
		t.Errorf("the object belongs to %v", owners)
	}
	n.configure("multitenancy: 4")
	mustRequestLabels()
	if labels := n.labels(); labels != "" {
		t.Errorf("the node has the labels %s", labels)
	}
	mustRestrictNodeFeatures(t, n, a)

	// When the object is deleted, Node Feature Discovery removes the labels that it has set.
	n.patch(`{"metadata": {"labels": {"` + labelPrefix + `vendor": "nvidia"}}}`)
	if err := features.Delete(context.Background(), n.featureName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	n.patch(`{"metadata": {"labels": {"` + labelPrefix + `vendor": null}}}`)
	mustRequestLabels()
}

// mustRestrictNodeFeatures fails unless the account may only request its own labels of its own node.
func mustRestrictNodeFeatures(t *testing.T, n *node, a account) {
	t.Helper()
	client := nodeFeatures(t, a.config(t))
	apply := func(name, node string, labels, flags map[string]any) error {
		features := map[string]any{"flags": flags, "attributes": map[string]any{}, "instances": map[string]any{}}
		text, err := json.Marshal(map[string]any{
			"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeature",
			"metadata": map[string]any{"name": name, "labels": map[string]any{nodeNameLabel: node}},
			"spec":     map[string]any{"labels": labels, "features": features},
		})
		if err != nil {
			t.Fatal(err)
		}
		force := true
		options := metav1.PatchOptions{FieldManager: "test", Force: &force}
		_, err = client.Patch(context.Background(), name, types.ApplyPatchType, text, options)
		return err
	}
	none, own := map[string]any{}, map[string]any{labelPrefix + "count": "2"}
	const other = accountName + "-other"
	for _, refused := range []struct {
		name, message string
		err           error
	}{
		{"the object of another node", "only the NodeFeature object of the node that it runs on", apply(other, "other", own, none)},
		{"an object about another node", "only the NodeFeature object of the node that it runs on", apply(n.featureName(), "other", own, none)},
		{"a label of others", "only its own labels", apply(n.featureName(), n.name, map[string]any{"example.com/team": "x"}, none)},
		{"features", "may not set features",
			apply(n.featureName(), n.name, own, map[string]any{"cpu.cpuid": map[string]any{"elements": map[string]any{"AVX": none}}})},
		{"deletion", "cannot delete resource", client.Delete(context.Background(), n.featureName(), metav1.DeleteOptions{})},
	} {
		if err := refused.err; !errors.IsForbidden(err) && !errors.IsInvalid(err) || !strings.Contains(err.Error(), refused.message) {
			t.Errorf("%s: got %v, expected a refusal with %q", refused.name, err, refused.message)
		}
	}
	if err := apply(n.featureName(), n.name, own, none); err != nil {
		t.Errorf("its own labels: %v", err)
	}
}

// featureName returns the name of the node's NodeFeature object.
func (n *node) featureName() string { return accountName + "-" + n.name }

// nodeFeatures returns a client of the NodeFeature objects in the namespace of the account.
func nodeFeatures(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: "nfd.k8s-sigs.io", Version: "v1alpha1", Resource: "nodefeatures"}
	return client.Resource(resource).Namespace(systemNamespace)
}

// requestedLabels returns the labels of an object, as `--print` prints them.
func requestedLabels(features dynamic.ResourceInterface, name string) string {
	object, err := features.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "labels")
	return labelLines(labels)
}
