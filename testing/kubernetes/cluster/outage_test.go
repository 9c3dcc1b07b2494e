package cluster

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mustLog waits until the log of a program contains text.
func (p *process) mustLog(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the log of "+p.log+" contains "+text, true, func() bool {
		log, _ := os.ReadFile(p.log)
		return strings.Contains(string(log), text)
	})
	if err := p.alive(); err != nil {
		t.Error(err)
	}
}

// Without the API server, or with one that answers late, the program reports why, and is up to
// date soon after the API server has returned. The daemon serves devices meanwhile.
func TestDiscoverySurvivesOutages(t *testing.T) {
	t.Parallel()
	n := startNode(t, "outage", "")
	a, d := n.account(accountName), newDoor(t)
	p := n.startDiscovery(a, d.port(), n.name)
	p.mustLog(t, "cannot reach the API server")
	d.open.Store(true)
	n.mustHaveLabels()

	d.open.Store(false)
	n.configure("multitenancy: 2")
	n.mustHave(4, 4)
	d.delay.Store(int64(200 * time.Millisecond))
	d.open.Store(true)
	n.mustHaveLabels()
}

// A token that the API server refuses is read again, because the kubelet replaces it.
func TestDiscoveryReadsTheTokenAgain(t *testing.T) {
	t.Parallel()
	n := startNode(t, "token", "")
	a := n.account(accountName)
	token := a.token(t)
	a.write(t, "token", []byte("expired"))
	p := n.startDiscovery(a, apiServerPort(), n.name)
	p.mustLog(t, "401")
	p.mustLog(t, "expired or is unknown")
	a.write(t, "token", token)
	n.mustHaveLabels()
}

// Without permissions, the program reports what is forbidden, and works when it is allowed.
func TestDiscoveryReportsWhatIsForbidden(t *testing.T) {
	t.Parallel()
	n := startNode(t, "forbidden", "")
	const name = "without-role"
	ctx := context.Background()
	object := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := api.CoreV1().ServiceAccounts(systemNamespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := n.startDiscovery(n.account(name), apiServerPort(), n.name)
	p.mustLog(t, "403")
	p.mustLog(t, `cannot `)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleName},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: systemNamespace}},
	}
	if _, err := api.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.mustHaveLabels()
}

// A node object that does not exist is reported, and gets its labels when it appears.
func TestDiscoveryWaitsForTheNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, "present", "")
	late := &node{t: t, name: "late"}
	p := n.startDiscovery(n.account(accountName), apiServerPort(), late.name)
	p.mustLog(t, "404")
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: late.name}}
	if _, err := api.CoreV1().Nodes().Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The account may not change it: its pod runs on another node.
	p.mustLog(t, "may change only the node that it runs on")
	if labels := late.labels(); labels != "" {
		t.Errorf("another node has the labels %s", labels)
	}
}
