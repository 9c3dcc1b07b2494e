package cluster

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// accountName is the service account of the manifest.
	accountName = "directx-device-plugin-discovery"
	// systemNamespace is the one of the manifest.
	systemNamespace = "kube-system"
	// roleName is the ClusterRole of the manifest.
	roleName = accountName + "." + systemNamespace
	// writer is the name under which the program changes nodes and reports Events.
	writer = "directx-feature-discovery"
	// accountFolder is where a container finds its account, below a root.
	accountFolder = "var/run/secrets/kubernetes.io/serviceaccount"
)

// account is the account of a pod on a node: what the kubelet has mounted for the pod.
type account struct {
	// root is what a container of the pod sees as /.
	root string
}

// account returns the account of a pod on this node. The kubelet requests the token with its own
// certificate, and the API server writes the name of the node into it.
func (n *node) account(serviceAccount string) account {
	n.t.Helper()
	spec := n.podSpec(0)
	yes := true
	spec.NodeName, spec.NodeSelector = n.name, nil
	spec.AutomountServiceAccountToken = &yes
	spec.ServiceAccountName = serviceAccount
	spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
	object := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: n.name + "-" + serviceAccount}, Spec: spec}
	created, err := api.CoreV1().Pods(systemNamespace).Create(context.Background(), object, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	volumes := filepath.Join(n.folder, "root/pods", string(created.UID), "volumes/kubernetes.io~projected")
	a := account{filepath.Join(n.folder, "account-of-"+serviceAccount)}
	for _, name := range []string{"token", "ca.crt", "namespace"} {
		var text []byte
		eventually(n.t, name+" in "+volumes, true, func() bool {
			found, _ := filepath.Glob(filepath.Join(volumes, "*", name))
			if len(found) > 0 {
				text, _ = os.ReadFile(found[0])
			}
			return len(text) > 0
		})
		a.write(n.t, name, text)
	}
	return a
}

func (a account) write(t *testing.T, name string, text []byte) {
	t.Helper()
	folder := filepath.Join(a.root, accountFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	replaceFile(t, filepath.Join(folder, name), text)
}

func (a account) token(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(a.root, accountFolder, "token"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// client returns a client of the API server that uses the account.
func (a account) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(a.config(t))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// config returns what a client needs to use the account.
func (a account) config(t *testing.T) *rest.Config {
	t.Helper()
	config := rest.AnonymousClientConfig(administrator)
	config.BearerToken = string(a.token(t))
	return config
}

// apiServerAddress returns the address of the API server.
func apiServerAddress() string {
	return strings.TrimPrefix(administrator.Host, "https://")
}

func apiServerPort() string {
	_, port, _ := net.SplitHostPort(apiServerAddress())
	return port
}
