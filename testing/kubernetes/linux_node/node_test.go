package linux_node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	nodeName = "linux-node"
	display  = "directx.microsoft.com/display"
	// limit bounds every wait for something that takes seconds on an idle machine.
	limit = time.Minute

	manifests = "/etc/kubernetes/manifests"
	podLogs   = "/var/log/pods"
	inventory = sharedFolder + "/inventory.yaml"
)

// containerdConfiguration also suits machines that lack the programs of AppArmor or the capability
// SYS_RESOURCE.
const containerdConfiguration = `version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '` + checkImage + `'
[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true
`

// kubeletConfiguration is for a kubelet without API server on any machine.
var kubeletConfiguration = map[string]any{
	"apiVersion":               "kubelet.config.k8s.io/v1beta1",
	"kind":                     "KubeletConfiguration",
	"staticPodPath":            manifests,
	"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
	"cgroupDriver":             "cgroupfs",
	"cgroupsPerQOS":            false,
	"enforceNodeAllocatable":   []string{"none"},
	"failCgroupV1":             false,
	"failSwapOn":               false,
	// The kernel's parameters are read-only.
	"featureGates":           map[string]bool{"KubeletInUserNamespace": true},
	"makeIPTablesUtilChains": false,
	"readOnlyPort":           10255,
	"authentication":         map[string]any{"anonymous": map[string]bool{"enabled": false}, "webhook": map[string]bool{"enabled": false}},
	// The default asks an API server.
	"authorization": map[string]string{"mode": "AlwaysAllow"},
	"resolvConf":    "",
	// A full disk must neither remove the image of the test nor its pods.
	"imageGCHighThresholdPercent": 100,
	"evictionHard":                map[string]string{"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
}

// daemon is a running program of the node. It ends with the node.
type daemon struct {
	command *exec.Cmd
	ended   chan struct{}
}

// start starts a program, which adds its output to NAME.log.
func start(t *testing.T, name string, arguments ...string) *daemon {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(sharedFolder, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(t, err)
	defer log.Close()
	d := &daemon{exec.Command(name, arguments...), make(chan struct{})}
	d.command.Stdout, d.command.Stderr = log, log
	must(t, d.command.Start())
	go func() {
		_ = d.command.Wait()
		close(d.ended)
	}()
	return d
}

func (d *daemon) kill() {
	_ = d.command.Process.Kill()
	<-d.ended
}

// run runs a program and returns what it writes to its standard output.
func run(name string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, name, arguments...)
	var messages strings.Builder
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w: %s%s", command, err, output, messages.String())
	}
	return string(output), nil
}

// eventually waits until a condition holds. What the last attempt returned explains a failure.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("gave up waiting until %s: %v", what, err)
		}
	}
}

func startContainerd(t *testing.T) *daemon {
	t.Helper()
	d := start(t, "containerd", "--config", sharedFolder+"/containerd.toml")
	eventually(t, "containerd answers", func() error {
		_, err := run("ctr", "version")
		return err
	})
	return d
}

func importImage(t *testing.T, archive string) {
	t.Helper()
	_, err := run("ctr", "--namespace", "k8s.io", "images", "import", archive)
	must(t, err)
}

func startKubelet(t *testing.T) *daemon {
	t.Helper()
	d := start(t, "kubelet", "--config", sharedFolder+"/kubelet.json", "--hostname-override", nodeName, "--v=2")
	eventually(t, "the kubelet lists its pods", func() error {
		_, err := listPods()
		return err
	})
	return d
}

func startPlugin(t *testing.T) *daemon {
	t.Helper()
	d := start(t, "directx-device-plugin", "serve", "--driver-model=wddm", "--demonstration", "--inventory", inventory)
	awaitRegistration(t)
	return d
}

// awaitRegistration waits until the kubelet has received the plugin's devices.
func awaitRegistration(t *testing.T) {
	t.Helper()
	eventually(t, "the plugin is registered", func() error {
		_, err := run("directx-device-plugin", "status", "--driver-model=wddm")
		return err
	})
}

// listPods asks the kubelet for its pods, by their names in the manifests.
func listPods() (map[string]corev1.Pod, error) {
	response, err := http.Get("http://127.0.0.1:10255/pods")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list corev1.PodList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	found := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		found[strings.TrimSuffix(pod.Name, "-"+nodeName)] = pod
	}
	return found, nil
}

// addPod gives the kubelet a manifest.
func addPod(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	manifest := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]string{"name": name, "namespace": "default"},
	}
	// The kubelet ignores files that begin with a dot.
	partial := filepath.Join(manifests, "."+name)
	must(t, os.WriteFile(partial, mustJSON(manifest), 0o644))
	must(t, os.Rename(partial, filepath.Join(manifests, name+".json")))
}

// addCheckPod gives the kubelet a pod that requests devices, and prints its environment.
func addCheckPod(t *testing.T, name string, devices int) {
	t.Helper()
	container := map[string]any{
		"name": "main", "image": checkImage, "imagePullPolicy": "Never",
		"command": []string{"/check", "check"},
	}
	if devices > 0 {
		container["resources"] = map[string]any{"limits": map[string]int{display: devices}}
	}
	// Without a CNI plugin, containerd gives a pod no network.
	addPod(t, name, map[string]any{
		"hostNetwork": true, "containers": []any{container},
		"automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
	})
}

// awaitContainer waits until the container of a pod runs, and returns its identifier.
func awaitContainer(t *testing.T, name, before string) string {
	t.Helper()
	id := ""
	eventually(t, "pod "+name+" runs", func() error {
		pods, err := listPods()
		if err != nil {
			return err
		}
		for _, status := range pods[name].Status.ContainerStatuses {
			if status.State.Running != nil && status.ContainerID != before {
				id = status.ContainerID
				return nil
			}
		}
		return fmt.Errorf("%+v", pods[name].Status)
	})
	return id
}

// removePod waits until the kubelet has removed a pod.
func removePod(t *testing.T, name string) {
	t.Helper()
	must(t, os.Remove(filepath.Join(manifests, name+".json")))
	eventually(t, "pod "+name+" is removed", func() error {
		pods, err := listPods()
		if _, exists := pods[name]; exists {
			return fmt.Errorf("%+v", pods[name].Status)
		}
		return err
	})
}

// awaitEnvironment returns the variables that the container of a pod has printed.
func awaitEnvironment(t *testing.T, name string) []string {
	t.Helper()
	var found []string
	eventually(t, "pod "+name+" has printed its environment", func() error {
		files, err := filepath.Glob(fmt.Sprintf("%s/default_%s-%s_*/main/0.log", podLogs, name, nodeName))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("%v %w", files, err)
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			return err
		}
		// TIME STREAM TAG TEXT
		fields := strings.SplitN(string(text), " ", 4)
		if len(fields) < 4 {
			return fmt.Errorf("%q", text)
		}
		return json.Unmarshal([]byte(fields[3]), &found)
	})
	return found
}
