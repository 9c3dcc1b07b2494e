package manifests

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// isLinux reports whether the pods of a DaemonSet run on Linux.
func isLinux(daemonSet *appsv1.DaemonSet) bool {
	return daemonSet.Spec.Template.Spec.OS.Name == corev1.Linux
}

// linuxFaults returns what is wrong with pods for Linux. They only use sockets.
func linuxFaults(pod corev1.PodSpec) []string {
	var found []string
	must := func(condition bool, format string, arguments ...any) {
		if !condition {
			found = append(found, fmt.Sprintf(format, arguments...))
		}
	}
	container := pod.Containers[0]
	context := container.SecurityContext
	must(pod.NodeSelector["directx.microsoft.com/demonstration"] == "true", "the pods run on nodes that were not chosen")
	must(!pod.HostPID && !pod.HostIPC && pod.HostNetwork == (len(container.Ports) > 0), "the pods share more of the host than they need")
	must(*context.RunAsUser == 0, "the pods cannot open the sockets of the kubelet and of the plugin")
	unprivileged := context.Privileged == nil && context.AllowPrivilegeEscalation != nil && !*context.AllowPrivilegeEscalation &&
		context.Capabilities != nil && slices.Equal(context.Capabilities.Drop, []corev1.Capability{"ALL"})
	must(unprivileged, "the pods have more rights than they need")
	must(*context.ReadOnlyRootFilesystem, "the pods can write to their root")
	for _, mount := range container.VolumeMounts {
		must(mount.ReadOnly != (mount.Name == "device-plugins"), "the pods can write to %s, or must", mount.MountPath)
		must(mount.MountPropagation == nil, "the pods start only where %s is a shared mount", mount.MountPath)
		volume := volumeOf(pod, mount)
		if volume.HostPath != nil {
			// The sockets of the kubelet may be elsewhere on the node.
			isKubelet := mount.MountPath == "/var/lib/kubelet/"+mount.Name && strings.HasSuffix(volume.HostPath.Path, "/"+mount.Name)
			must(isKubelet, "%s is at another path in the container", volume.HostPath.Path)
			must(*volume.HostPath.Type == corev1.HostPathUnset, "the pods start only where %s exists", volume.HostPath.Path)
		}
	}
	return found
}

// paths returns the folders of the node that pods use.
func paths(pod corev1.PodSpec) string {
	found := []string{}
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			found = append(found, volume.HostPath.Path)
		}
	}
	return strings.Join(found, " ")
}

// TestLinux checks that nodes of both systems can be in one cluster.
func TestLinux(t *testing.T) {
	chart := mustRender(t, "linux: {enabled: true}").daemonSets
	if len(chart) != 2 || isLinux(chart[0]) || !isLinux(chart[1]) {
		t.Fatalf("the chart has %d DaemonSets", len(chart))
	}
	mustEqual(t, "name", chart[1].Name, "gpus-directx-device-plugin-linux")
	if !reflect.DeepEqual(chart[0].Spec, mustRender(t, "").daemonSets[0].Spec) {
		t.Error("linux.enabled changes the pods of Windows nodes")
	}
	plugin, linuxPlugin := variantObjects(t, "directx-device-plugin.yml", ""), variantObjects(t, "linux.yml", "")
	for _, pair := range [][]*appsv1.DaemonSet{chart, {plugin.daemonSets[0], linuxPlugin.daemonSets[0]}} {
		windows, linux := pair[0], pair[1]
		if windows.Name == linux.Name || matches(windows.Spec.Selector.MatchLabels, linux.Spec.Template.Labels) ||
			matches(linux.Spec.Selector.MatchLabels, windows.Spec.Template.Labels) {
			t.Errorf("the DaemonSets %s and %s collide", windows.Name, linux.Name)
		}
	}
}

// TestKubeletDirectory checks the folders on nodes whose kubelet has another directory.
func TestKubeletDirectory(t *testing.T) {
	found := mustRender(t, "linux: {enabled: true, config: shared, kubeletDir: /var/lib/k0s/kubelet}\n"+enabled)
	const plugins = "/var/lib/k0s/kubelet/device-plugins"
	for i, folders := range map[int]string{
		1: plugins + " /var/lib/k0s/kubelet/pod-resources",
		3: plugins,
	} {
		mustBeSafe(t, found.daemonSets[i])
		pod := found.daemonSets[i].Spec.Template.Spec
		mustEqual(t, "folders", paths(pod), folders)
		mustEqual(t, "folder in the container", pod.Containers[0].VolumeMounts[0].MountPath, "/var/lib/kubelet/device-plugins")
	}
	for _, wrong := range []string{"kubelet", "/var/lib/kubelet/"} {
		if _, _, err := render(t, "linux: {enabled: true, kubeletDir: "+wrong+"}"); err == nil {
			t.Errorf("the chart accepts %s", wrong)
		}
	}
}

// TestLinuxConfiguration checks which values apply to Linux nodes.
func TestLinuxConfiguration(t *testing.T) {
	found := mustRender(t, `
linux: {enabled: true, config: shared, image: {repository: example.com/linux, tag: test}, nodeSelector: {zone: a}, tolerations: [{key: a, operator: Exists}]}
nodeSelector: {pool: windows}
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
visibility: {enabled: true}
metrics: {enabled: true, address: 10.0.0.1}
podMonitor: {enabled: true}
config: {map: {exclusive: 'multitenancy: 1', shared: 'multitenancy: 4'}}
pools: [{name: a, nodeSelector: {pool: a}, config: exclusive}]
`)
	linux := found.daemonSets[slices.IndexFunc(found.daemonSets, isLinux)]
	mustBeSafe(t, linux)
	pod := linux.Spec.Template.Spec
	mustEqual(t, "image", pod.Containers[0].Image, "example.com/linux:test")
	expected := map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "directx.microsoft.com/demonstration": "true", "zone": "a"}
	if !maps.Equal(pod.NodeSelector, expected) || pod.Affinity != nil || len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != "a" {
		t.Errorf("the pods run on nodes with %v, %v and %v", pod.NodeSelector, pod.Affinity, pod.Tolerations)
	}
	mustEqual(t, "arguments", strings.Join(pod.Containers[0].Args, " "),
		"serve --driver-model=wddm --driver-model=mcdm --inventory=/etc/directx-inventory/inventory.yaml --config=/etc/directx-device-plugins/config.yaml --log-format=text --log-level=info --listen=10.0.0.1:9400")
	labelled := mustRender(t, "linux: {enabled: true, nodeSelector: {directx.microsoft.com/demonstration: null, feature: a}}").daemonSets[1]
	expected = map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "feature": "a"}
	if selector := labelled.Spec.Template.Spec.NodeSelector; !maps.Equal(selector, expected) {
		t.Errorf("the pods run on nodes with %v", selector)
	}
	var variables []string
	for _, variable := range pod.Containers[0].Env {
		variables = append(variables, variable.Name)
	}
	mustEqual(t, "variables", strings.Join(variables, " "), "NODE_NAME POD_UID")
	monitored := fmt.Sprint(found.custom[0].Object["spec"])
	if name := linux.Spec.Template.Labels["app.kubernetes.io/name"]; !strings.Contains(monitored, " "+name+" ") {
		t.Errorf("the PodMonitor does not select %s: %s", name, monitored)
	}
	c := newContainer(t, linux, found.configMaps)
	c.mustAcceptCommands()
	c.mustReadConfiguration()
	c.mustAdvertise(own, map[string]int64{display: 8, compute: 0})
}

// TestHelmTest checks the pods of `helm test`: they run on the nodes of the plugin, and ask as its readiness
// probe does.
func TestHelmTest(t *testing.T) {
	found := mustRender(t, "linux: {enabled: true, nodeSelector: {zone: a}}\nconfig: {map: {a: ''}}\n"+
		"pools: [{name: x, nodeSelector: {pool: x}, driverModels: [mcdm]}, {name: z, fallback: true}]")
	if len(found.tests) != 3 || len(found.daemonSets) != 3 {
		t.Fatalf("there are %d tests of %d DaemonSets", len(found.tests), len(found.daemonSets))
	}
	for i, test := range found.tests {
		mustEqual(t, "hook", test.Annotations["helm.sh/hook"], "test")
		plugin, pod := found.daemonSets[i].Spec.Template.Spec, test.Spec
		mustEqual(t, test.Name, strings.Join(append(pod.Containers[0].Command, pod.Containers[0].Args...), " "),
			strings.Join(plugin.Containers[0].ReadinessProbe.Exec.Command, " "))
		if !reflect.DeepEqual(pod.NodeSelector, plugin.NodeSelector) || !reflect.DeepEqual(pod.Affinity, plugin.Affinity) ||
			!reflect.DeepEqual(pod.Tolerations, plugin.Tolerations) || !reflect.DeepEqual(pod.SecurityContext, plugin.SecurityContext) {
			t.Errorf("%s does not run as the plugin: %+v", test.Name, pod)
		}
		mustEqual(t, "image", pod.Containers[0].Image, plugin.Containers[0].Image)
		if test.Spec.OS.Name == corev1.Linux {
			mustEqual(t, "folders", paths(pod), "/var/lib/kubelet/device-plugins")
			rights := pod.Containers[0].SecurityContext
			if rights.Privileged != nil || *rights.AllowPrivilegeEscalation || !slices.Equal(rights.Capabilities.Drop, []corev1.Capability{"ALL"}) || pod.HostNetwork {
				t.Errorf("%s has more rights than it needs: %+v", test.Name, rights)
			}
		} else {
			mustEqual(t, "folders", paths(pod), "")
		}
		if faults := containerFaults(pod.Containers[0]); len(faults) != 0 {
			t.Error(faults)
		}
		for _, daemonSet := range found.daemonSets {
			if matches(daemonSet.Spec.Selector.MatchLabels, test.Labels) {
				t.Errorf("the DaemonSet %s selects the pod %s", daemonSet.Name, test.Name)
			}
		}
	}
}

// TestLinuxDiscovery checks the pods that label Linux nodes.
func TestLinuxDiscovery(t *testing.T) {
	found := mustRender(t, "linux: {enabled: true, config: shared}\n"+enabled)
	windows, linux := found.daemonSets[2], found.daemonSets[3]
	mustEqual(t, "name", linux.Name, "gpus-directx-device-plugin-discovery-linux")
	if !isDiscovery(windows) || isLinux(windows) || !isDiscovery(linux) || !isLinux(linux) {
		t.Fatalf("the chart has the DaemonSets %s and %s", windows.Name, linux.Name)
	}
	mustBeSafe(t, linux)
	if matches(windows.Spec.Selector.MatchLabels, linux.Spec.Template.Labels) ||
		matches(linux.Spec.Selector.MatchLabels, windows.Spec.Template.Labels) {
		t.Error("the DaemonSets collide")
	}
	pod := linux.Spec.Template.Spec
	mustEqual(t, "folders", paths(pod), "/var/lib/kubelet/device-plugins")
	mustEqual(t, "account", pod.ServiceAccountName, windows.Spec.Template.Spec.ServiceAccountName)
	mustOnlyAskThePlugin(t, linux)
	labels := newContainer(t, found.daemonSets[1], found.configMaps).labels(linux, own)
	mustEqual(t, "count", labels["directx.microsoft.com/count"], "2")
	mustEqual(t, "product", labels["nvidia.com/gpu.product"], "Tesla-T4-SHARED")
}
