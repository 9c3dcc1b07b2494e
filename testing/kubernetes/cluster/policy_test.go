package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
		Type: v1.EventTypeNormal, ReportingController: writer, ReportingInstance: n.name, Regarding: v1.ObjectReference{Kind: "Node", Name: n.name},
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

// The program warns if no policy restricts its account, and otherwise tries once to do what the policy refuses.
func TestProgramWarnsOfAnAccountWithoutPolicy(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const name = "unrestricted"
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: systemNamespace}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName}}
	if _, err := api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	serviceAccount := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := api.CoreV1().ServiceAccounts(systemNamespace).Create(ctx, serviceAccount, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	restricted := startNode(t, "restricted", "")
	restricted.startDiscovery(restricted.account(accountName), apiServerPort(), restricted.name)
	restricted.mustHaveLabels()
	unrestricted := startNode(t, name, "")
	unrestricted.startDiscovery(unrestricted.account(name), apiServerPort(), unrestricted.name)

	const warning = "no admission policy restricts the account of this pod"
	eventually(t, "the warning", 1, func() int { return strings.Count(unrestricted.discoveryLog(), warning) })
	tried := func() (codes []int) {
		for _, r := range auditedRequests(t, filepath.Join(folder, "audit.log"), accountName) {
			if r.Object.Name == restricted.name && r.Response.Code >= 400 {
				codes = append(codes, r.Response.Code)
			}
		}
		return codes
	}
	eventually(t, "the refused request", 1, func() int { return len(tried()) })
	if codes := tried(); codes[0] != 422 {
		t.Errorf("the request was refused with %d", codes[0])
	}
	if text := restricted.discoveryLog(); strings.Contains(text, warning) {
		t.Errorf("the program with a restricted account warns:\n%s", text)
	}
	for _, n := range []*node{restricted, unrestricted} {
		if labels := n.object().Labels; labels["example.com/directx-feature-discovery"] != "" {
			t.Errorf("the label was set: %v", labels)
		}
	}
}

func (n *node) discoveryLog() string {
	n.t.Helper()
	text, err := os.ReadFile(n.discovery.log)
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text)
}
