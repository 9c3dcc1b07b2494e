package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// chartNamespace is where the test installs the chart.
	chartNamespace = "device-plugins"
	// cleanupName is the name of the clean-up's Job and account.
	cleanupName = "gpus-directx-device-plugin-cleanup"
)

// After `helm uninstall`, a Job of the chart removes labels, conditions and startup taint from the nodes, with
// an account that exists only meanwhile. Nothing of the chart remains except the namespace.
func TestCleanupAfterUninstall(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// The Job is for a Windows node, so no kubelet runs it.
	runHelm(t, "install", "gpus", chart, "--create-namespace",
		"--set", pushedImage+",psa.enabled=true,featureDiscovery.enabled=true,featureDiscovery.cleanup=true,featureDiscovery.startupTaint="+startupTaint)
	mustHaveAccounts(t, "gpus-directx-device-plugin-discovery")
	n := labeledNode(t, "cleanup")

	uninstalled := make(chan struct{})
	t.Cleanup(func() { <-uninstalled })
	go func() {
		defer close(uninstalled)
		runHelm(t, "uninstall", "gpus")
	}()
	var pods *v1.PodList
	eventually(t, "pods of the Job", 1, func() (count int) {
		pods, _ = api.CoreV1().Pods(chartNamespace).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + cleanupName})
		return len(pods.Items)
	})
	mustHaveAccounts(t, cleanupName)
	a := accountOf(t, cleanupName)
	client := a.client(t)
	if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	mustOnlyRemove(t, client, n)
	n.cleanUp(a, pods.Items[0].Spec.Containers[0])
	for message, err := range map[string]error{
		"cannot delete resource \"nodes\"": client.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{}),
		"cannot get resource \"secrets\"": func() error {
			_, err := client.CoreV1().Secrets(chartNamespace).Get(ctx, "x", metav1.GetOptions{})
			return err
		}(),
	} {
		if !errors.IsForbidden(err) || !strings.Contains(err.Error(), message) {
			t.Errorf("got %v, expected a refusal with %q", err, message)
		}
	}

	finished := []byte(`{"status": {"phase": "Succeeded"}}`)
	if _, err := api.CoreV1().Pods(chartNamespace).Patch(ctx, pods.Items[0].Name, types.StrategicMergePatchType, finished, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	<-uninstalled
	mustHaveAccounts(t, "")
	roles, err := api.RbacV1().ClusterRoles().List(ctx, ofChart)
	if err != nil || len(roles.Items) != 0 {
		t.Errorf("there are still roles: %v %v", roles, err)
	}
	policies, err := api.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, ofChart)
	if err != nil || len(policies.Items) != 0 {
		t.Errorf("there are still policies: %v %v", policies, err)
	}
	namespace, err := api.CoreV1().Namespaces().Get(ctx, chartNamespace, metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "privileged" || namespace.DeletionTimestamp != nil {
		t.Errorf("the namespace is %v: %v", namespace, err)
	}
}

// mustOnlyRemove fails unless the policy refuses every change of a node to the account of the clean-up that does not remove what
// the feature discovery has written.
func mustOnlyRemove(t *testing.T, client *kubernetes.Clientset, n *node) {
	t.Helper()
	for name, change := range map[string]struct{ patch, subresource string }{
		"a new label":                           {`{"metadata": {"labels": {"directx.microsoft.com/vendor": "other"}}}`, ""},
		"another value of a label":              {`{"metadata": {"labels": {"directx.microsoft.com/count": "9"}}}`, ""},
		"another label":                         {`{"metadata": {"labels": {"example.com/team": null}}}`, ""},
		"an annotation":                         {`{"metadata": {"annotations": {"directx.microsoft.com/cordoned-devices": "x"}}}`, ""},
		"a finalizer":                           {`{"metadata": {"finalizers": ["example.com/x"]}}`, ""},
		"unschedulable":                         {`{"spec": {"unschedulable": true}}`, ""},
		"a new taint":                           {`{"spec": {"taints": [{"key": "example.com/x", "effect": "NoExecute"}]}}`, ""},
		"the startup taint with another effect": {`{"spec": {"taints": [{"key": "` + startupTaint + `", "effect": "NoExecute"}]}}`, ""},
		"a new condition":                       {`{"status": {"conditions": [{"type": "Other", "status": "True"}]}}`, "status"},
		"another condition":                     {`{"status": {"conditions": [{"type": "DirectXDevicesHealthy", "status": "Unknown"}]}}`, "status"},
		"the capacity":                          {`{"status": {"capacity": {"example.com/gpu": "9"}}}`, "status"},
	} {
		eventually(t, "the refusal of "+name, "directx-feature-discovery cleanup may", func() string {
			_, err := client.CoreV1().Nodes().Patch(context.Background(), n.name, types.StrategicMergePatchType, []byte(change.patch),
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources(change.subresource)...)
			_, reason, _ := strings.Cut(text(err), "denied request: ")
			return reason[:min(len(reason), len("directx-feature-discovery cleanup may"))]
		})
	}
}

// ofChart selects the objects of the chart.
var ofChart = metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=gpus"}

// mustHaveAccounts fails unless the service accounts of the chart have these names.
func mustHaveAccounts(t *testing.T, expected string) {
	t.Helper()
	accounts, err := api.CoreV1().ServiceAccounts(chartNamespace).List(context.Background(), ofChart)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, account := range accounts.Items {
		names = append(names, account.Name)
	}
	if found := strings.Join(names, " "); found != expected {
		t.Errorf("the chart has the accounts %q, expected %q", found, expected)
	}
}

// runHelm runs helm for the namespace of the chart.
func runHelm(t *testing.T, arguments ...string) {
	t.Helper()
	command := helmCommand(append(arguments, "--namespace", chartNamespace, "--kubeconfig", filepath.Join(folder, "kubeconfig"),
		"--timeout", waitLimit.String())...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", command, err, output)
	}
}

// helmCommand is helm with a separate home.
func helmCommand(arguments ...string) *exec.Cmd {
	command := exec.Command(helm, arguments...)
	command.Env = []string{"HOME=" + filepath.Join(folder, "home")}
	return command
}

// accountOf returns a service account of the chart as a pod has it.
func accountOf(t *testing.T, serviceAccount string) account {
	t.Helper()
	token, err := api.CoreV1().ServiceAccounts(chartNamespace).CreateToken(context.Background(), serviceAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(folder, "pki/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	a := account{t.TempDir()}
	a.write(t, "token", []byte(token.Status.Token))
	a.write(t, "ca.crt", authority)
	a.write(t, "namespace", []byte(chartNamespace))
	return a
}

// labeledNode creates a node without kubelet, with what the feature discovery sets.
func labeledNode(t *testing.T, name string) *node {
	t.Helper()
	ctx := context.Background()
	object := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"example.com/team": "graphics"}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: startupTaint, Effect: v1.TaintEffectNoSchedule}}},
	}
	_, err := api.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}) })
	for subresource, fields := range map[string]string{
		"": `"metadata": {"name": "` + name + `", "labels": {"` + labelPrefix + `count": "2"}}`,
		"status": `"metadata": {"name": "` + name + `"}, "status": {"conditions": [` +
			`{"type": "` + string(healthyCondition) + `", "status": "True", "reason": "AllHealthy"},` +
			`{"type": "` + string(readyCondition) + `", "status": "True", "reason": "DevicesReady"}]}`,
	} {
		text := []byte(`{"apiVersion": "v1", "kind": "Node", ` + fields + `}`)
		if _, err := api.CoreV1().Nodes().Patch(ctx, name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: writer}, subresources(subresource)...); err != nil {
			t.Fatal(err)
		}
	}
	return &node{t: t, name: name}
}

// cleanUp runs the container of the Job for this node only. The account is what the kubelet mounts.
func (n *node) cleanUp(a account, container v1.Container) {
	n.t.Helper()
	command := exec.Command(discovery, append(container.Args, "--node", n.name)...)
	command.Env = []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + apiServerPort(), "CONTAINER_SANDBOX_MOUNT_POINT=" + a.root}
	if output, err := command.CombinedOutput(); err != nil {
		n.t.Errorf("%v: %v\n%s", command, err, output)
	}
	if found := n.labels() + n.conditions() + n.taints(); found != "none, none" {
		n.t.Errorf("the node still has %q", found)
	}
	if team := n.object().Labels["example.com/team"]; team != "graphics" {
		n.t.Errorf("another label of the node is now %q", team)
	}
}
