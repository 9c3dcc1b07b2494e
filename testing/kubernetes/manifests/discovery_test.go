package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const enabled = "featureDiscovery: {enabled: true, gfdLabels: true, nodeFeature: true, startupTaint: directx.microsoft.com/not-ready}\n" +
	"config: {map: {shared: 'multitenancy: 4'}}"

// TestFeatureDiscovery checks the container that labels its node, and the rights of its account.
func TestFeatureDiscovery(t *testing.T) {
	manifest, err := admit(read(t, "deploy/feature-discovery.yml"))
	if err != nil {
		t.Fatal(err)
	}
	chart := mustRender(t, enabled)
	for name, found := range map[string]objects{"manifest": manifest, "chart": chart} {
		t.Run(name, func(t *testing.T) {
			if len(found.daemonSets) != 1 {
				t.Fatalf("%d DaemonSets, expected 1", len(found.daemonSets))
			}
			mustBeSafe(t, found.daemonSets[0])
			mustBeRestricted(t, found)
			labels := printedLabels(t, found.daemonSets[0], found.configMaps)
			if !strings.Contains(labels, "directx.microsoft.com/product=NVIDIA-Tesla-T4\n") {
				t.Errorf("the container prints %q", labels)
			}
			shared := strings.Contains(labels, "nvidia.com/gpu.product=NVIDIA-Tesla-T4-SHARED\n")
			if shared != (name == "chart") {
				t.Errorf("the container does not use its options and its configuration: %q", labels)
			}
		})
	}
	rules := func(found objects) any {
		return [][]admissionv1.Validation{found.account.policies[0].Spec.Validations, found.account.policies[1].Spec.Validations}
	}
	if !reflect.DeepEqual(rules(manifest), rules(chart)) {
		t.Error("the policies of the manifest and of the chart differ")
	}
	selecting := mustRender(t, enabled[:strings.Index(enabled, "config:")]+
		"config: {byNodeLabel: true, default: a, map: {a: '', b: ''}}")
	for _, container := range selecting.daemonSets[0].Spec.Template.Spec.Containers {
		words := strings.Join(container.Args, " ")
		if !strings.Contains(words, " --config-default=a --config-selection=") ||
			strings.Contains(words, " --select-config") != isDiscovery(container) {
			t.Errorf("%s does not follow the label of the node: %s", container.Name, words)
		}
	}
	without := mustRender(t, strings.Replace(enabled, "nodeFeature: true, ", "", 1))
	if len(without.account.roles) != 1 || len(without.account.policies) != 1 {
		t.Error("without the option, the account may change NodeFeature objects")
	}
	if without := mustRender(t, strings.Replace(enabled, "enabled: true", "enabled: true, admissionPolicy: false", 1)); len(without.account.policies) != 0 {
		t.Error("the policy cannot be left out")
	}
	other := mustRender(t, strings.Replace(enabled, "directx.microsoft.com/not-ready", "example.com/starting", 1))
	containers := other.daemonSets[0].Spec.Template.Spec.Containers
	args := containers[slices.IndexFunc(containers, isDiscovery)].Args
	if !slices.Contains(args, "--startup-taint=example.com/starting") {
		t.Errorf("the container does not remove the taint: %q", args)
	}
	for name, expected := range map[string]int{"otherTaints": 1, "oldOtherTaints": 1} {
		for _, variable := range other.account.policies[0].Spec.Variables {
			if variable.Name == name {
				expected -= strings.Count(variable.Expression, "taint.key != 'example.com/starting'")
			}
		}
		if expected != 0 {
			t.Errorf("%s of the policy does not permit the removal of the taint", name)
		}
	}
}

// mustBeRestricted fails if the account has other rights than documented, or is not the one that
// the policy restricts.
func mustBeRestricted(t *testing.T, found objects) {
	t.Helper()
	account, pod := found.account, found.daemonSets[0].Spec.Template.Spec
	if len(account.accounts) != 1 || account.accounts[0].Name != pod.ServiceAccountName {
		t.Fatalf("the pods have the account %q", pod.ServiceAccountName)
	}
	name, namespace := pod.ServiceAccountName, found.daemonSets[0].Namespace
	mustEqual(t, "namespace of the account", account.accounts[0].Namespace, namespace)
	for _, subject := range account.subjects {
		if subject != (rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace}) {
			t.Errorf("a role is bound to %v", subject)
		}
	}
	if len(account.subjects) != 3 || len(account.clusterRoles) != 1 || len(account.roles) != 2 {
		t.Fatalf("the account has other roles: %+v", account)
	}
	if rules := account.clusterRoles[0].Rules; !reflect.DeepEqual(rules, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
	}) {
		t.Errorf("the account has the rights %+v", rules)
	}
	mustEqual(t, "namespace of Events", account.roles[0].Namespace, "default")
	mustEqual(t, "namespace of NodeFeature objects", account.roles[1].Namespace, namespace)
	if len(account.policies) != 2 || len(account.bindings) != 2 {
		t.Fatalf("the account has %d policies, expected 2", len(account.policies))
	}
	for i, policy := range account.policies {
		mustEqual(t, "bound policy", account.bindings[i].Spec.PolicyName, policy.Name)
		mustEqual(t, "restricted account", policy.Spec.MatchConditions[0].Expression,
			"request.userInfo.username == 'system:serviceaccount:"+namespace+":"+name+"'")
	}
}

// printedLabels runs the container with `--print` on a recorded host.
func printedLabels(t *testing.T, daemonSet *appsv1.DaemonSet, configMaps []*corev1.ConfigMap) string {
	t.Helper()
	pod := daemonSet.Spec.Template.Spec
	spec := pod.Containers[slices.IndexFunc(pod.Containers, isDiscovery)]
	mustEqual(t, "command", strings.Join(spec.Command, " "), mountPoint+`\directx-feature-discovery.exe`)
	root := t.TempDir()
	for _, mount := range spec.VolumeMounts {
		for path, text := range volumeFiles(t, pod, mount.Name, daemonSet.Namespace, configMaps) {
			file := filepath.Join(root, filepath.FromSlash(mount.MountPath), path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	arguments := []string{"--print", "--inventory", inventoryPath(twoT4)}
	for _, word := range spec.Args {
		// They need a cluster.
		if !strings.HasPrefix(word, "--startup-taint=") && word != "--select-config" && word != "--node-feature" {
			arguments = append(arguments, (&container{root: root}).expand(word))
		}
	}
	output, err := exec.Command(discovery, arguments...).Output()
	if err != nil {
		t.Fatalf("%q: %v", arguments, err)
	}
	return string(output)
}
