package manifests

import (
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const enabled = "featureDiscovery: {enabled: true, gfdLabels: true, startupTaint: directx.microsoft.com/not-ready}\n" +
	"config: {map: {shared: 'multitenancy: 4'}}"

// TestFeatureDiscovery checks the container that labels its node, and the rights of its account.
func TestFeatureDiscovery(t *testing.T) {
	manifest, chart := variantObjects(t, "feature-discovery.yml", ""), mustRender(t, enabled)
	for name, found := range map[string]objects{"manifest": manifest, "chart": chart} {
		t.Run(name, func(t *testing.T) {
			daemonSet := discoveryOf(found)
			mustBeSafe(t, daemonSet)
			mustBeRestricted(t, found)
			mustOnlyAskThePlugin(t, daemonSet)
		})
	}
	labels := newContainer(t, chart.daemonSets[0], chart.configMaps).labels(discoveryOf(chart), twoT4)
	mustEqual(t, "product", labels["directx.microsoft.com/product"], "NVIDIA-Tesla-T4")
	mustEqual(t, "NVIDIA's product", labels["nvidia.com/gpu.product"], "Tesla-T4-SHARED")
	rules := func(found objects) []admissionv1.Validation { return found.account.policies[0].Spec.Validations }
	without := mustRender(t, strings.Replace(enabled, "gfdLabels: true, ", "", 1))
	for _, rule := range rules(without) {
		permits := strings.Contains(rule.Expression, "nvidia.com")
		switch rule.Message {
		case "directx-feature-discovery may set only its own labels":
			if permits {
				t.Error("without gfdLabels, the account may set NVIDIA's labels")
			}
		case "directx-feature-discovery may remove only its own labels":
			if !permits {
				t.Error("NVIDIA's labels cannot be removed after gfdLabels was switched off")
			}
		}
	}
	before, after := mustRender(t, "").daemonSets[0].Spec, chart.daemonSets[0].Spec
	after.Template.Spec.Volumes, after.Template.Spec.Containers[0].VolumeMounts = nil, nil
	after.Template.Spec.Containers[0].Args = before.Template.Spec.Containers[0].Args
	if !reflect.DeepEqual(before, after) {
		t.Error("enabling the feature discovery restarts the plugin")
	}
	if without := mustRender(t, strings.Replace(enabled, "enabled: true", "enabled: true, admissionPolicy: false", 1)); len(without.account.policies) != 0 {
		t.Error("the policy cannot be left out")
	} else if !checksNoPolicy(without) {
		t.Error("the program warns of a policy that was left out")
	}
	if checksNoPolicy(manifest) || checksNoPolicy(chart) {
		t.Error("the program does not check the policy")
	}
	for values, expected := range map[string][2]string{
		enabled:                                {"--listen=127.0.0.1:9401", "health"},
		enabled + "\nmetrics: {enabled: true}": {"--listen=:9401", "metrics"},
	} {
		container := discoveryOf(mustRender(t, values)).Spec.Template.Spec.Containers[0]
		if !slices.Contains(container.Args, expected[0]) {
			t.Errorf("the container has the arguments %q", container.Args)
		}
		mustEqual(t, "port", container.Ports[0].Name, expected[1])
	}
	other := mustRender(t, strings.Replace(enabled, "directx.microsoft.com/not-ready", "example.com/starting", 1))
	args := discoveryOf(other).Spec.Template.Spec.Containers[0].Args
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

// TestNoHooks checks that `helm template --no-hooks`, which the documentation tells users of `kubectl apply`, leaves out what runs once.
func TestNoHooks(t *testing.T) {
	manifest, messages, err := render(t, "featureDiscovery: {enabled: true, cleanup: true}", "--no-hooks")
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, messages)
	}
	found, err := admit(manifest)
	if err != nil || len(found.daemonSets) != 2 || len(found.jobs)+len(found.tests) != 0 || len(found.account.accounts) != 1 || len(found.account.clusterRoles) != 1 {
		t.Errorf("%d DaemonSets, %d Jobs, %d tests, %+v: %v", len(found.daemonSets), len(found.jobs), len(found.tests), found.account, err)
	}
}

// TestCleanup checks the Job that removes the labels after the chart, and the rights of its account.
func TestCleanup(t *testing.T) {
	if found := mustRender(t, enabled); len(found.jobs) != 0 || len(found.account.accounts) != 1 {
		t.Error("without featureDiscovery.cleanup, there is a Job or a second account")
	}
	for name, values := range map[string]string{"Windows": "", "Linux": "demonstration: {enabled: true}\n"} {
		t.Run(name, func(t *testing.T) {
			found := mustRender(t, values+"featureDiscovery: {enabled: true, cleanup: true, startupTaint: example.com/starting, apiServer: {host: 10.0.0.1}}\npools: [{name: a, nodeSelector: {pool: a}}]")
			account, hook := found.account, found.jobs[0]
			pod := hook.Spec.Template.Spec
			mustEqual(t, "account", pod.ServiceAccountName, "gpus-directx-device-plugin-cleanup")
			mustEqual(t, "subject", fmt.Sprint(account.subjects[slices.IndexFunc(account.subjects, func(subject rbacv1.Subject) bool {
				return subject.Name == pod.ServiceAccountName
			})]), "{ServiceAccount  gpus-directx-device-plugin-cleanup "+releaseNamespace+"}")
			role := account.clusterRoles[slices.IndexFunc(account.clusterRoles, func(role *rbacv1.ClusterRole) bool {
				return strings.HasPrefix(role.Name, pod.ServiceAccountName)
			})]
			if !reflect.DeepEqual(role.Rules, []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch"}},
				{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
			}) {
				t.Errorf("the account has the rights %+v", role.Rules)
			}
			if len(account.policies) != 2 || len(account.bindings) != 2 {
				t.Fatalf("there are %d policies and %d bindings", len(account.policies), len(account.bindings))
			}
			policy, binding := account.policies[1], account.bindings[1]
			mustEqual(t, "bound policy", binding.Spec.PolicyName, policy.Name)
			if !isFor(t, policy, "system:serviceaccount:"+releaseNamespace+":"+pod.ServiceAccountName) {
				t.Error("the policy does not restrict the account")
			}
			if isFor(t, account.policies[0], "system:serviceaccount:"+releaseNamespace+":"+pod.ServiceAccountName) {
				t.Error("the policy of the feature discovery restricts the account of the clean-up")
			}
			// Helm deletes the hooks in the order of their weights, so an account never remains without its policy.
			mustEqual(t, "weights", role.Annotations["helm.sh/hook-weight"]+policy.Annotations["helm.sh/hook-weight"]+hook.Annotations["helm.sh/hook-weight"], "12")
			for _, annotations := range []map[string]string{hook.Annotations, role.Annotations, account.accounts[1].Annotations, policy.Annotations, binding.Annotations} {
				mustEqual(t, "hook", annotations["helm.sh/hook"], "post-delete")
				mustEqual(t, "removal", annotations["helm.sh/hook-delete-policy"], "before-hook-creation,hook-succeeded")
			}
			command := strings.Join(append(pod.Containers[0].Command, pod.Containers[0].Args...), " ")
			if pod.OS.Name == corev1.Linux {
				mustEqual(t, "command", command, "/directx-feature-discovery cleanup --startup-taint=example.com/starting")
				mustEqual(t, "image", pod.Containers[0].Image, linuxImage+":"+version(t))
				if pod.HostNetwork || len(pod.Volumes) != 0 || pod.Containers[0].SecurityContext.Privileged != nil || len(pod.NodeSelector) != 2 {
					t.Errorf("the pod has more rights than it needs: %+v", pod)
				}
			} else {
				mustEqual(t, "command", command, mountPoint+`\directx-feature-discovery.exe cleanup --startup-taint=example.com/starting`)
				mustEqual(t, "image", pod.Containers[0].Image, image+":"+version(t))
				if faults := windowsFaults(pod); len(faults) != 0 {
					t.Error(faults)
				}
			}
			mustEqual(t, "operating system", string(pod.OS.Name), strings.ToLower(name))
			mustEqual(t, "operating system of the node", pod.NodeSelector["kubernetes.io/os"], strings.ToLower(name))
			if faults := containerFaults(pod.Containers[0]); len(faults) != 0 {
				t.Error(faults)
			}
			mustEqual(t, "address", fmt.Sprint(pod.Containers[0].Env), "[{KUBERNETES_SERVICE_HOST 10.0.0.1 nil} {KUBERNETES_SERVICE_PORT 443 nil}]")
		})
	}
}

// discoveryOf returns the DaemonSet that labels nodes.
func discoveryOf(found objects) *appsv1.DaemonSet {
	return found.daemonSets[slices.IndexFunc(found.daemonSets, isDiscovery)]
}

// mustBeRestricted fails if the account has other rights than documented, or is not the one that
// the policy restricts.
func mustBeRestricted(t *testing.T, found objects) {
	t.Helper()
	account, pod := found.account, discoveryOf(found).Spec.Template.Spec
	if len(account.accounts) != 1 || account.accounts[0].Name != pod.ServiceAccountName {
		t.Fatalf("the pods have the account %q", pod.ServiceAccountName)
	}
	name, namespace := pod.ServiceAccountName, discoveryOf(found).Namespace
	mustEqual(t, "namespace of the account", account.accounts[0].Namespace, namespace)
	for _, subject := range account.subjects {
		if subject != (rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: namespace}) {
			t.Errorf("a role is bound to %v", subject)
		}
	}
	if len(account.subjects) != 1 || len(account.clusterRoles) != 1 || len(account.roles) != 0 {
		t.Fatalf("the account has other roles: %+v", account)
	}
	if rules := account.clusterRoles[0].Rules; !reflect.DeepEqual(rules, []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"watch", "patch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"get", "create", "patch"}},
	}) {
		t.Errorf("the account has the rights %+v", rules)
	}
	if len(account.policies) != 1 || len(account.bindings) != 1 {
		t.Fatalf("the account has %d policies, expected 1", len(account.policies))
	}
	for i, policy := range account.policies {
		mustEqual(t, "bound policy", account.bindings[i].Spec.PolicyName, policy.Name)
		if !isFor(t, policy, "system:serviceaccount:"+namespace+":"+name) {
			t.Error("the policy does not restrict the account")
		}
	}
}

// checksNoPolicy reports whether the feature discovery does not check that a policy restricts its account.
func checksNoPolicy(found objects) bool {
	return slices.Contains(discoveryOf(found).Spec.Template.Spec.Containers[0].Args, "--no-policy-check")
}

// mustOnlyAskThePlugin fails unless the feature discovery gets nothing but its own options, the name
// of its node, the API server, and on Linux the folder with the plugin's sockets. The devices, the
// configuration and its variables are those of the plugin.
func mustOnlyAskThePlugin(t *testing.T, daemonSet *appsv1.DaemonSet) {
	t.Helper()
	pod := daemonSet.Spec.Template.Spec
	container := pod.Containers[0]
	command, folders := mountPoint+`\directx-feature-discovery.exe`, ""
	if isLinux(daemonSet) {
		command, folders = "/directx-feature-discovery", "/var/lib/kubelet/device-plugins"
	}
	mustEqual(t, "command", strings.Join(container.Command, " "), command)
	mounted := []string{}
	for _, mount := range container.VolumeMounts {
		mounted = append(mounted, mount.MountPath)
	}
	mustEqual(t, "folders", strings.Join(mounted, " "), folders)
	for _, variable := range container.Env {
		if !slices.Contains([]string{"NODE_NAME", "NODE_IP", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}, variable.Name) {
			t.Errorf("%s has the variable %s", daemonSet.Name, variable.Name)
		}
	}
	arguments := []string{}
	for _, word := range container.Args {
		option, _, _ := strings.Cut(word, "=")
		if !slices.Contains([]string{"--log-format", "--log-level", "--gfd-labels", "--startup-taint", "--listen", "--no-policy-check"}, option) {
			t.Errorf("%s has the argument %s", daemonSet.Name, word)
		}
		// As the kubelet does.
		arguments = append(arguments, strings.ReplaceAll(word, "$(NODE_IP)", "127.0.0.1"))
	}
	help, err := exec.Command(discovery, append(arguments, "--help")...).CombinedOutput()
	if err != nil || !strings.Contains(string(help), "Usage: directx-feature-discovery") {
		t.Errorf("the program does not accept %q: %v\n%s", arguments, err, help)
	}
}

// labels returns the labels that `simulate` predicts for a node with this plugin and this feature
// discovery.
func (c *container) labels(discovery *appsv1.DaemonSet, inventory string) map[string]string {
	c.t.Helper()
	options := []string{}
	if slices.Contains(discovery.Spec.Template.Spec.Containers[0].Args, "--gfd-labels") {
		options = append(options, "--gfd-labels")
	}
	return c.simulate(inventory, options...).Labels
}
