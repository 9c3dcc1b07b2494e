package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kubeletConfiguration is for a kubelet without API server, which runs the pods of a folder.
func (n *node) kubeletConfiguration() map[string]any {
	return map[string]any{
		"apiVersion":         "kubelet.config.k8s.io/v1beta1",
		"kind":               "KubeletConfiguration",
		"staticPodPath":      n.manifests(),
		"fileCheckFrequency": "2s",
		"podLogsDir":         filepath.Join(n.folder, "pod-logs"),
		"volumePluginDir":    filepath.Join(n.folder, "volume-plugins"),

		"containerRuntimeEndpoint": n.endpoint,
		// Whoever may call the kubelet's port may run programs in containers of SYSTEM. Nobody may;
		// the read-only port lists the pods.
		"address":        "127.0.0.1",
		"port":           n.ports.server,
		"readOnlyPort":   n.ports.readOnly,
		"healthzPort":    0,
		"authentication": map[string]any{"anonymous": map[string]bool{"enabled": false}, "webhook": map[string]bool{"enabled": false}},
		// The default asks an API server.
		"authorization": map[string]string{"mode": "AlwaysAllow"},
		// The default is a file that Windows does not have.
		"resolvConf":             "",
		"cgroupsPerQOS":          false,
		"enforceNodeAllocatable": []string{"none"},
		// A full disk must neither remove the images of the test nor its pods.
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                map[string]string{"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
	}
}

func (n *node) manifests() string { return filepath.Join(n.folder, "manifests") }

// startKubelet starts the kubelet and waits until it serves.
func (n *node) startKubelet(ctx context.Context) ([]string, error) {
	configuration := filepath.Join(n.folder, "kubelet.json")
	if err := os.MkdirAll(n.manifests(), 0o755); err != nil {
		return nil, err
	}
	if err := writeJSON(configuration, n.kubeletConfiguration()); err != nil {
		return nil, err
	}
	return nil, n.runKubelet(ctx)
}

func (n *node) runKubelet(ctx context.Context) error {
	var err error
	n.kubelet, err = n.startDaemon("kubelet", "--config", filepath.Join(n.folder, "kubelet.json"),
		"--root-dir", filepath.Join(n.folder, "kubelet"), "--cert-dir", filepath.Join(n.folder, "pki"), "--v=4")
	if err != nil {
		return err
	}
	return eventually(ctx, "the kubelet lists its pods", func() (bool, error) {
		if err := n.kubelet.alive(); err != nil {
			return false, &problem{"the kubelet has ended", "read kubelet.log", err}
		}
		_, err := n.podStatuses(ctx)
		return err == nil, err
	})
}

// cause returns why something failed that is tried again.
func cause(err error) error {
	if known := (*problem)(nil); errors.As(err, &known) && known.cause != nil {
		return known.cause
	}
	return err
}

// podStatus is what the kubelet reports about a pod.
type podStatus struct {
	phase, reason, message string
	// container is the identifier of the pod's only container, if it runs.
	container string
	// ready means that the readiness probe of the container succeeds.
	ready bool
}

// podStatuses asks the kubelet for its pods, by their names in the manifests.
func (n *node) podStatuses(ctx context.Context) (map[string]podStatus, error) {
	var text strings.Builder
	if err := get(ctx, fmt.Sprintf("http://127.0.0.1:%d/pods", n.ports.readOnly), &text); err != nil {
		return nil, cause(err)
	}
	return parsePods(text.String())
}

func parsePods(text string) (map[string]podStatus, error) {
	var list struct {
		Kind  string
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ NodeName string }
			Status   struct {
				Phase, Reason, Message string
				ContainerStatuses      []struct {
					ContainerID string
					Ready       bool
					State       struct{ Running *struct{} }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	if list.Kind != "PodList" {
		return nil, fmt.Errorf("expected a PodList: %s", tail(text))
	}
	found := map[string]podStatus{}
	for _, item := range list.Items {
		pod := podStatus{phase: item.Status.Phase, reason: item.Status.Reason, message: item.Status.Message}
		for _, container := range item.Status.ContainerStatuses {
			if container.State.Running != nil {
				_, pod.container, _ = strings.Cut(container.ContainerID, "://")
				pod.ready = container.Ready
			}
		}
		found[strings.TrimSuffix(item.Metadata.Name, "-"+item.Spec.NodeName)] = pod
	}
	return found, nil
}

// pod returns the manifest of a pod that requests devices.
func (n *node) pod(name string, devices int) map[string]any {
	container := map[string]any{
		"name": "main", "image": n.image, "imagePullPolicy": "Never", "command": script(n.podChecks()),
		"resources": map[string]any{"limits": map[string]int{display: devices}},
	}
	spec := map[string]any{
		"os":                            map[string]string{"name": n.os},
		"containers":                    []any{container},
		"automountServiceAccountToken":  false,
		"terminationGracePeriodSeconds": 1,
	}
	if n.live {
		container["volumeMounts"] = []any{map[string]any{"name": "programs", "mountPath": probeFolder, "readOnly": true}}
		spec["volumes"] = []any{map[string]any{"name": "programs", "hostPath": map[string]string{"path": n.programs}}}
	}
	return manifest(name, spec)
}

// defaultConfiguration is where the plugin looks for its configuration without options.
const defaultConfiguration = "/etc/directx-device-plugins"

// pluginPod returns the manifest of the plugin as the DaemonSet runs it. Static pods have no
// ConfigMaps: a folder takes the place of one. When the container is stopped, it is not started
// again.
func (n *node) pluginPod(name, image string) map[string]any {
	probe := func(arguments ...string) map[string]any {
		command := append([]string{pluginProgram, "status"}, arguments...)
		return map[string]any{"exec": map[string]any{"command": command}, "periodSeconds": 5, "timeoutSeconds": 10}
	}
	arguments := n.serveArguments()
	container := map[string]any{
		"name": "main", "image": image, "imagePullPolicy": "Never",
		"command": []string{pluginProgram},
		// Without the option --config and its value.
		"args":           append(arguments[:1:1], arguments[3:]...),
		"readinessProbe": probe(), "livenessProbe": probe("--live"),
		"volumeMounts": []any{map[string]any{"name": "config", "mountPath": defaultConfiguration}},
	}
	spec := hostProcessSpec()
	spec["restartPolicy"] = "Never"
	spec["containers"] = []any{container}
	spec["volumes"] = []any{map[string]any{"name": "config", "hostPath": map[string]string{"path": n.configMap()}}}
	return manifest(name, spec)
}

// configMap is the folder with the plugin's configuration under its default name.
func (n *node) configMap() string { return filepath.Join(n.folder, "config") }

const pluginProgram = `%CONTAINER_SANDBOX_MOUNT_POINT%\directx-device-plugin.exe`

// hostProcessSpec is what the pods of the DaemonSets for Windows have in common.
func hostProcessSpec() map[string]any {
	return map[string]any{
		"os":                           map[string]string{"name": "windows"},
		"hostNetwork":                  true,
		"automountServiceAccountToken": false,
		"securityContext": map[string]any{
			"windowsOptions": map[string]any{"hostProcess": true, "runAsUserName": `NT AUTHORITY\SYSTEM`},
		},
	}
}

func manifest(name string, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]string{"name": name, "namespace": "default"},
	}
}

// addDevicePod gives the kubelet a pod that requests devices. A kubelet that does not know the
// resource starts the pod without its device, and says nothing.
func (n *node) addDevicePod(ctx context.Context, name string, devices int) error {
	if err := n.mustBeReady(ctx); err != nil {
		return &problem{"the plugin is not registered; a pod would start without its device", "read plugin.log and kubelet.log", err}
	}
	if err := n.mustHaveFiles(); err != nil {
		return err
	}
	return n.addPod(name, n.pod(name, devices))
}

// addPod gives the kubelet a manifest, which it must not see before it is complete.
func (n *node) addPod(name string, manifest map[string]any) error {
	partial := filepath.Join(n.folder, name+".json")
	if err := writeJSON(partial, manifest); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(n.manifests(), name+".json"))
}

// removePod waits until the kubelet has removed a pod.
func (n *node) removePod(ctx context.Context, name string) error {
	if err := os.Remove(filepath.Join(n.manifests(), name+".json")); err != nil {
		return err
	}
	return eventually(ctx, "the kubelet has removed a pod", func() (bool, error) {
		pods, err := n.podStatuses(ctx)
		_, exists := pods[name]
		return err == nil && !exists, err
	})
}

// awaitPod waits until a pod is as wanted.
func (n *node) awaitPod(ctx context.Context, name, what string, wanted func(podStatus) bool) (podStatus, error) {
	var pod podStatus
	err := eventually(ctx, "pod "+name+" "+what, func() (bool, error) {
		pods, err := n.podStatuses(ctx)
		if err != nil {
			return false, err
		}
		pod = pods[name]
		return wanted(pod), fmt.Errorf("phase %q, reason %q: %s", pod.phase, pod.reason, pod.message)
	})
	return pod, err
}

// runs means that the container of the pod runs.
func runs(pod podStatus) bool { return pod.container != "" }
