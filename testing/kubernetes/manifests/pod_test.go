package manifests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// mustBeSafe fails unless a DaemonSet runs on every supported Windows, or on every Linux, with no
// more rights than the plugin needs.
func mustBeSafe(t *testing.T, daemonSet *appsv1.DaemonSet) {
	t.Helper()
	for _, fault := range faults(daemonSet) {
		t.Errorf("%s: %s", daemonSet.Name, fault)
	}
}

// faults returns what is wrong with a DaemonSet that the API server accepts.
func faults(daemonSet *appsv1.DaemonSet) []string {
	var found []string
	must := func(condition bool, format string, arguments ...any) {
		if !condition {
			found = append(found, fmt.Sprintf(format, arguments...))
		}
	}
	pod := daemonSet.Spec.Template.Spec
	must(pod.OS != nil && string(pod.OS.Name) == pod.NodeSelector["kubernetes.io/os"], "the pods may run on Linux and on Windows")
	must(pod.NodeSelector["kubernetes.io/arch"] == "amd64", "the pods may run on other processors")
	for label := range pod.NodeSelector {
		must(label != "node.kubernetes.io/windows-build", "the pods run only on one Windows build")
	}
	discovers := isDiscovery(daemonSet)
	must(pod.AutomountServiceAccountToken != nil && *pod.AutomountServiceAccountToken == discovers, "the pods get a token for the API server, or need one")
	must((pod.ServiceAccountName != "") == discovers, "the pods have a service account, or need one")
	must(pod.PriorityClassName == "system-node-critical", "the pods may be evicted: priority class %q", pod.PriorityClassName)
	must(len(pod.Tolerations) > 0, "the pods do not run on tainted nodes")
	must((len(pod.InitContainers) > 0) == isVisible(daemonSet), "the pods have init containers, or need one")
	must(len(pod.Containers) == 1, "the pods have more than one container")

	if isLinux(daemonSet) {
		found = append(found, linuxFaults(pod)...)
	} else {
		found = append(found, windowsFaults(pod)...)
	}

	for _, container := range append(pod.InitContainers, pod.Containers...) {
		found = append(found, containerFaults(container)...)
		must(container.SecurityContext == nil || isLinux(daemonSet), "the container changes the security context of the pod")
		hasProbes := isCommand(container.StartupProbe) && isCommand(container.ReadinessProbe) && isCommand(container.LivenessProbe)
		must(hasProbes == isPlugin(daemonSet), "the container has no probes with commands, or needs none")
		hasPages := isProbed(container, container.ReadinessProbe, "/readyz") && isProbed(container, container.LivenessProbe, "/healthz")
		must(hasPages == discovers, "the container has no probes of its pages, or needs none")
	}

	update := daemonSet.Spec.UpdateStrategy
	if update.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		must(update.RollingUpdate.MaxSurge.IntValue() == 0, "an update runs two plugins on one node")
	}
	return found
}

// windowsFaults returns what is wrong with pods for Windows.
func windowsFaults(pod corev1.PodSpec) []string {
	var found []string
	must := func(condition bool, format string, arguments ...any) {
		if !condition {
			found = append(found, fmt.Sprintf(format, arguments...))
		}
	}
	must(pod.HostNetwork, "hostNetwork is not true")
	windows := &corev1.WindowsSecurityContextOptions{}
	if pod.SecurityContext != nil && pod.SecurityContext.WindowsOptions != nil {
		windows = pod.SecurityContext.WindowsOptions
	}
	must(windows.HostProcess != nil && *windows.HostProcess, "the pods are not HostProcess")
	must(windows.RunAsUserName != nil && *windows.RunAsUserName == `NT AUTHORITY\SYSTEM`, "the pods do not run as SYSTEM")
	for _, volume := range pod.Volumes {
		must(volume.ConfigMap != nil, "volume %s is not a ConfigMap", volume.Name)
	}
	return found
}

// isDiscovery reports whether the pods of a DaemonSet label their nodes.
func isDiscovery(daemonSet *appsv1.DaemonSet) bool {
	return daemonSet.Spec.Template.Spec.Containers[0].Name == "directx-feature-discovery"
}

// isVisible reports whether the pods of a DaemonSet copy directx-visible to their nodes.
func isVisible(daemonSet *appsv1.DaemonSet) bool {
	return daemonSet.Spec.Template.Spec.Containers[0].Name == "wait"
}

// isPlugin reports whether the pods of a DaemonSet run the plugin.
func isPlugin(daemonSet *appsv1.DaemonSet) bool {
	return !isDiscovery(daemonSet) && !isVisible(daemonSet)
}

func isCommand(probe *corev1.Probe) bool {
	return probe != nil && probe.Exec != nil
}

// isProbed reports whether a probe asks the container's port for this page, at the address that the
// program listens on.
func isProbed(container corev1.Container, probe *corev1.Probe, page string) bool {
	if probe == nil || probe.HTTPGet == nil || len(container.Ports) != 1 {
		return false
	}
	// Without a host, the kubelet uses the address of the pod, which is the one of the node.
	host := "127.0.0.1"
	if slices.ContainsFunc(container.Args, func(word string) bool { return strings.HasPrefix(word, "--listen=[$(NODE_IP)]:") }) {
		host = ""
	}
	request := probe.HTTPGet
	return request.Path == page && request.Port.IntVal == container.Ports[0].ContainerPort && request.Host == host
}

// containerFaults returns what is wrong with a container.
func containerFaults(container corev1.Container) []string {
	var found []string
	must := func(condition bool, format string, arguments ...any) {
		if !condition {
			found = append(found, fmt.Sprintf(format, arguments...))
		}
	}
	listens := slices.ContainsFunc(container.Args, func(argument string) bool { return strings.HasPrefix(argument, "--listen=") })
	must(listens == (len(container.Ports) == 1), "the ports of the container are not those that the program listens on")
	for name, list := range map[string]corev1.ResourceList{"requests": container.Resources.Requests, "limits": container.Resources.Limits} {
		must(!list.Cpu().IsZero() && !list.Memory().IsZero(), "resources.%s lacks cpu or memory", name)
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe} {
		if isCommand(probe) {
			must(slices.Contains(probe.Exec.Command, "--live"), "a probe restarts a plugin that waits")
			must(slices.ContainsFunc(container.Env, isPodUID), "another plugin on the node answers the probes")
		}
	}
	// containerd runs the command of a HostProcess container by `cmd /c`, which gives these
	// characters a meaning of its own. It removes quotes only if the command begins with one, which it
	// does if its first word has a space.
	must(!strings.Contains(container.Command[0], " "), "cmd does not find the program %q", container.Command[0])
	for _, word := range words(container) {
		rest := strings.ReplaceAll(word, mountPoint, "")
		must(!strings.ContainsAny(rest, "&%^|<>\""), "cmd does not pass on the argument %q unchanged", word)
	}
	return found
}

// isPodUID reports whether a variable is the one by which probes find the plugin of their pod.
func isPodUID(variable corev1.EnvVar) bool {
	source := variable.ValueFrom
	return variable.Name == "POD_UID" && source != nil && source.FieldRef != nil && source.FieldRef.FieldPath == "metadata.uid"
}

// words are the words of all commands of a container.
func words(container corev1.Container) []string {
	all := append(append([]string{}, container.Command...), container.Args...)
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		if isCommand(probe) {
			all = append(all, probe.Exec.Command...)
		}
	}
	return all
}

// TestJudges shows that each judge of a manifest finds something: the API server's code, the rules for pods, and the program.
func TestJudges(t *testing.T) {
	valid := read(t, "deploy/multitenancy-configmap.yml")
	for _, change := range []struct{ from, to, fault string }{
		{"hostNetwork: true", "hostnetwork: true", `unknown field "spec.template.spec.hostnetwork"`},
		{"periodSeconds: 60", "periodSeconds: often", "cannot unmarshal string"},
		{"hostNetwork: true", "hostNetwork: false", "hostNetwork must be true if pod contains any hostProcess containers"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: true", "token"},
		{"- --live", "- --verbose", "a probe restarts a plugin that waits"},
		{"- serve", "- serve&echo", "cmd does not pass on"},
		{"multitenancy: 4", "multitenacy: 4", "did you mean `multitenancy`?"},
		{"- '--config=", "- '--listen=", "the program does not use"},
	} {
		found, err := admit(strings.Replace(valid, change.from, change.to, 1))
		messages := []string{fmt.Sprint(err)}
		if err == nil {
			messages = append(messages, faults(found.daemonSets[0])...)
		}
		if err == nil && !strings.Contains(change.to, "serve") {
			c := newContainer(t, found.daemonSets[0], found.configMaps)
			_, err := c.run(append([]string{"simulate", "--inventory", inventoryPath(twoT4)}, c.configuration()...)...)
			messages = append(messages, fmt.Sprint(err))
			if err == nil && len(c.unusedConfiguration()) > 0 {
				messages = append(messages, "the program does not use a file")
			}
		}
		if text := strings.Join(messages, "\n"); !strings.Contains(text, change.fault) {
			t.Errorf("with %s, found %q, expected %q", change.to, text, change.fault)
		}
	}
}
