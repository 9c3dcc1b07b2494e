package manifests

import (
	"fmt"
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

// TestHelmTest checks the pods of `helm test`: they run on the nodes of the plugin, and ask as its readiness
// probe does.
func TestHelmTest(t *testing.T) {
	const pools = "config: {map: {a: ''}}\npools: [{name: x, nodeSelector: {pool: x}, driverModels: [mcdm]}, {name: z, fallback: true}]\n"
	for _, values := range []string{pools, pools + "demonstration: {enabled: true}"} {
		mustTestAsThePlugin(t, mustRender(t, values))
	}
}

func mustTestAsThePlugin(t *testing.T, found objects) {
	t.Helper()
	if len(found.tests) != 2 || len(found.daemonSets) != 2 {
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
