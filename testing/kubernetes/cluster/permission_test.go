package cluster

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The account of the manifest may change its own node, and there only what belongs to our
// programs.
func TestAccountMayOnlyChangeItsOwnNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, "own", "")
	other := startNode(t, "other", "")
	client := n.account(accountName).client(t)
	ctx := context.Background()
	patch := func(node, subresource, text string) func() error {
		return func() error {
			_, err := client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}, subresources(subresource)...)
			return err
		}
	}
	for _, allowed := range []struct {
		name string
		do   func() error
	}{
		{"its labels", patch(n.name, "", `{"metadata": {"labels": {"directx.microsoft.com/count": "2"}}}`)},
		{"its taint", patch(n.name, "", `{"spec": {"taints": [{"key": "directx.microsoft.com/not-ready", "effect": "NoSchedule"}]}}`)},
		{"a startup taint", patch(n.name, "", `{"spec": {"taints": [{"key": "startup-taint.cluster-autoscaler.kubernetes.io/gpu", "effect": "NoSchedule"}]}}`)},
		{"its conditions", patch(n.name, "status", `{"status": {"conditions": [{"type": "DirectXDevicesHealthy", "status": "True"}, {"type": "DirectXDevicesReady", "status": "True"}]}}`)},
	} {
		// The API server learns of a new policy, role or node within moments.
		eventually(t, allowed.name, "", func() string { return text(allowed.do()) })
	}
	for _, refused := range []struct {
		name, message string
		do            func() error
	}{
		{"reading a node", "cannot get resource", func() error { return get(client, n.name) }},
		{"labels of another node", "only the node that it runs on",
			patch(other.name, "", `{"metadata": {"labels": {"directx.microsoft.com/count": "9"}}}`)},
		{"condition of another node", "only the node that it runs on",
			patch(other.name, "status", `{"status": {"conditions": [{"type": "DirectXDevicesHealthy", "status": "False"}]}}`)},
		{"a label of others", "only its own labels",
			patch(n.name, "", `{"metadata": {"labels": {"kubernetes.io/os": "windows"}}}`)},
		{"removal of a label of others", "only its own labels",
			patch(n.name, "", `{"metadata": {"labels": {"kubernetes.io/hostname": null}}}`)},
		{"an annotation", "only labels in the metadata",
			patch(n.name, "", `{"metadata": {"annotations": {"directx.microsoft.com/note": "text"}}}`)},
		{"a finalizer", "only labels in the metadata",
			patch(n.name, "", `{"metadata": {"finalizers": ["directx.microsoft.com/keep"]}}`)},
		{"the cloud provider's ID", "only its own taints and startup taints",
			patch(n.name, "", `{"spec": {"providerID": "cloud://node"}}`)},
		{"a taint of others", "only its own taints and startup taints",
			patch(n.name, "", `{"spec": {"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]}}`)},
		{"cordoning", "only its own taints and startup taints",
			patch(n.name, "", `{"spec": {"unschedulable": true}}`)},
		{"the kubelet's condition", "only the conditions DirectXDevicesHealthy and DirectXDevicesReady",
			patch(n.name, "status", `{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}`)},
		{"a condition with a similar name", "only the conditions DirectXDevicesHealthy and DirectXDevicesReady",
			patch(n.name, "status", `{"status": {"conditions": [{"type": "DirectXDevicesReadyToo", "status": "True"}]}}`)},
		{"capacity", "only the conditions DirectXDevicesHealthy and DirectXDevicesReady",
			patch(n.name, "status", `{"status": {"capacity": {"directx.microsoft.com/display": "64"}}}`)},
		{"the kubelet's port", "only the conditions DirectXDevicesHealthy and DirectXDevicesReady",
			patch(n.name, "status", `{"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}}`)},
		{"deletion of its node", "cannot delete resource",
			func() error { return client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{}) }},
		{"reading pods", "cannot list resource", func() error {
			_, err := client.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"reading secrets", "cannot list resource", func() error {
			_, err := client.CoreV1().Secrets(systemNamespace).List(ctx, metav1.ListOptions{})
			return err
		}},
	} {
		err := refused.do()
		if !errors.IsForbidden(err) && !errors.IsInvalid(err) || !strings.Contains(err.Error(), refused.message) {
			t.Errorf("%s: got %v, expected a refusal with %q", refused.name, err, refused.message)
		}
	}
}

func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

func get(client *kubernetes.Clientset, node string) error {
	_, err := client.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	return err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
