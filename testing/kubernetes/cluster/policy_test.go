package cluster

import (
	"context"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The account has its rights and its restriction also where a kustomization has put it: in another namespace and with
// another name.
func TestPolicyFollowsTheAccountOfAKustomization(t *testing.T) {
	t.Parallel()
	const namespace, name = "windows-gpu", "team-" + accountName + "-b"
	ctx := context.Background()
	manifest, err := os.ReadFile(accountManifest)
	if err != nil {
		t.Fatal(err)
	}
	files := filesys.MakeFsInMemory()
	for name, text := range map[string]string{
		"manifest.yaml":      string(manifest),
		"kustomization.yaml": "{resources: [manifest.yaml], namespace: " + namespace + ", namePrefix: team-, nameSuffix: -b}",
	} {
		if err := files.WriteFile("/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/")
	if err != nil {
		t.Fatal(err)
	}
	text, err := found.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	object := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := api.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := apply(text); err != nil {
		t.Fatal(err)
	}
	token, err := api.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := account{t.TempDir()}
	a.write(t, "token", []byte(token.Status.Token))
	client := a.client(t)
	n := labeledNode(t, "kustomized")
	const refusal = "directx-feature-discovery may change only the node that it runs on"
	eventually(t, "the refusal of a change of another node", true, func() bool { return strings.Contains(labelError(client, n), refusal) })
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: metav1.NamespaceDefault}, EventTime: metav1.NowMicro(), Reason: "Test", Action: "Test",
		Type: v1.EventTypeNormal, ReportingController: accountName, ReportingInstance: n.name, Regarding: v1.ObjectReference{Kind: "Node", Name: n.name},
	}
	if _, err := client.EventsV1().Events(metav1.NamespaceDefault).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// labelError tries to label a node, and returns the error.
func labelError(client *kubernetes.Clientset, n *node) string {
	patch := []byte(`{"metadata": {"labels": {"directx.microsoft.com/count": "9"}}}`)
	_, err := client.CoreV1().Nodes().Patch(context.Background(), n.name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return text(err)
}
