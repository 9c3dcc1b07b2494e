package linux_node

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// content is what the files in the folders of Windows contain.
var content = map[string]string{"/usr/lib/wsl/lib": "a library", "/usr/lib/wsl/drivers": "a driver"}

// forbidden is how a container opens a device that the device controller of its control group does
// not allow.
const forbidden = "operation not permitted"

// TestOnTheNode runs as the first process of the node.
func TestOnTheNode(t *testing.T) {
	if os.Getenv(enteredVariable) == "" {
		t.Skip("part of TestLinuxNode")
	}
	defer func() {
		if t.Failed() {
			printLogs()
		}
	}()
	number, err := makeDXG()
	must(t, err)
	must(t, prepare())
	containerd := startContainerd(t)
	program, err := exec.LookPath("check")
	must(t, err)
	must(t, writeImage("/tmp/check.tar", checkImage, program))
	importImage(t, "/tmp/check.tar")
	importImage(t, sharedFolder+"/plugin.tar")
	startKubelet(t)
	plugin := startPlugin(t)
	wanted := predict(t)

	containers := map[string]string{}
	step(t, "a pod with a device opens it, and has files and variables", func(t *testing.T) {
		addCheckPod(t, "first", 1, number)
		containers["first"] = awaitContainer(t, "first", "")
		wanted.mustHave(t, awaitFindings(t, "first", 0))
	})
	step(t, "a pod without a device opens none", func(t *testing.T) {
		addCheckPod(t, "plain", 0, number)
		containers["plain"] = awaitContainer(t, "plain", "")
		found := awaitFindings(t, "plain", 0)
		if found.Open != "no such file or directory" || found.OpenOwn != forbidden {
			t.Errorf("opening the device ends with %q, and one of its own with %q", found.Open, found.OpenOwn)
		}
		if found.Content["/usr/lib/wsl/lib"] == content["/usr/lib/wsl/lib"] || len(found.hints()) > 0 {
			t.Errorf("the container has something of a device: %+v", found)
		}
	})
	step(t, "a pod is refused when too few devices are free", func(t *testing.T) {
		addCheckPod(t, "refused", 2, number)
		eventually(t, "the pod is refused", func() error {
			pods, err := listPods()
			if status := pods["refused"].Status; status.Phase != corev1.PodFailed || !strings.Contains(status.Message, display) {
				return fmt.Errorf("%+v %w", status, err)
			}
			return nil
		})
		removePod(t, "refused")
	})
	step(t, "pods keep their containers when the plugin restarts", func(t *testing.T) {
		plugin.kill()
		plugin = startPlugin(t)
		mustKeep(t, containers)
	})
	step(t, "pods keep their containers when containerd restarts", func(t *testing.T) {
		containerd.kill()
		containerd = startContainerd(t)
		addCheckPod(t, "second", 1, number)
		containers["second"] = awaitContainer(t, "second", "")
		wanted.mustHave(t, awaitFindings(t, "second", 0))
		mustKeep(t, containers)
	})
	step(t, "a restarted container has the same device", func(t *testing.T) {
		before := awaitFindings(t, "first", 0)
		_, id, _ := strings.Cut(containers["first"], "://")
		_, err := run("ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id)
		must(t, err)
		containers["first"] = awaitContainer(t, "first", containers["first"])
		after := awaitFindings(t, "first", 1)
		wanted.mustHave(t, after)
		if !maps.Equal(before.hints(), after.hints()) {
			t.Errorf("the container had %v, and has %v", before.hints(), after.hints())
		}
	})
	step(t, "the plugin runs from its image as in deploy/linux.yml", func(t *testing.T) {
		plugin.kill()
		must(t, os.WriteFile(pluginFile, []byte("cdiDevices: true\n"), 0o644))
		addPod(t, "plugin", pluginSpec(t))
		eventually(t, "the pod of the plugin is ready", func() error {
			pods, err := listPods()
			for _, condition := range pods["plugin"].Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("%+v %w", pods["plugin"].Status, err)
		})
	})
	step(t, "a pod has the same through CDI", func(t *testing.T) {
		removePod(t, "second")
		must(t, writeCDISpecification())
		wanted := predict(t)
		for _, pod := range wanted {
			if len(pod.Container.Devices)+len(pod.Container.Mounts) > 0 {
				t.Errorf("the plugin does not use CDI: %+v", pod)
			}
			if pod.Admitted {
				pod.Container.Envs["LD_LIBRARY_PATH"] = "/usr/lib/wsl/lib"
			}
		}
		addCheckPod(t, "cdi", 1, number)
		awaitContainer(t, "cdi", "")
		wanted.mustHave(t, awaitFindings(t, "cdi", 0))
	})
}

// pluginSpec returns the pod of deploy/linux.yml, with the inventory and without what needs a cluster.
func pluginSpec(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(sharedFolder + "/linux.yml")
	must(t, err)
	var daemonSet struct {
		Spec struct{ Template struct{ Spec map[string]any } }
	}
	must(t, yaml.Unmarshal(text, &daemonSet))
	spec := daemonSet.Spec.Template.Spec
	delete(spec, "nodeSelector")
	spec["hostNetwork"] = true
	spec["volumes"] = append(spec["volumes"].([]any), map[string]any{"name": "shared", "hostPath": map[string]string{"path": sharedFolder}})
	container := spec["containers"].([]any)[0].(map[string]any)
	container["imagePullPolicy"] = "Never"
	container["args"] = append(container["args"].([]any), "--inventory", inventory, "--config", pluginFile)
	container["volumeMounts"] = append(container["volumeMounts"].([]any), map[string]any{"name": "shared", "mountPath": sharedFolder})
	return spec
}

// writeCDISpecification writes what the plugin writes where adapters are behind /dev/dxg. A unit test
// of the plugin compares the snapshot.
func writeCDISpecification() error {
	text, err := os.ReadFile(sharedFolder + "/cdi.snap")
	if err != nil {
		return err
	}
	// ---
	// HEADER
	// ---
	// TEXT
	parts := strings.SplitN(string(text), "---\n", 3)
	if err := os.MkdirAll("/var/run/cdi", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/var/run/cdi/directx-dxg.json", []byte(parts[2]), 0o644)
}

// step runs a part of the test. The next one needs it.
func step(t *testing.T, name string, do func(t *testing.T)) {
	t.Helper()
	start := time.Now()
	if !t.Run(name, do) {
		t.FailNow()
	}
	t.Logf("%.1f s", time.Since(start).Seconds())
}

// prepare creates the files of the node.
func prepare() error {
	for folder, text := range content {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		name := map[string]string{"/usr/lib/wsl/lib": "libdxcore.so", "/usr/lib/wsl/drivers": "driver"}[folder]
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		return err
	}
	for path, text := range map[string][]byte{
		sharedFolder + "/containerd.toml": []byte(containerdConfiguration),
		sharedFolder + "/kubelet.json":    mustJSON(kubeletConfiguration),
		pluginFile:                        nil,
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// prediction is what `simulate` says about the containers of pods with a device.
type prediction []struct {
	Admitted  bool
	Container struct {
		Devices []struct{ HostPath string }
		Mounts  []struct{ ContainerPath string }
		Envs    map[string]string
	}
}

func predict(t *testing.T) prediction {
	t.Helper()
	text, err := run("directx-device-plugin", "simulate", "--driver-model=wddm", "--inventory", inventory, "--config", pluginFile, "--output", "json")
	must(t, err)
	var output struct{ Pods prediction }
	must(t, json.Unmarshal([]byte(text), &output))
	return output.Pods
}

// mustHave fails unless a container has a device, the folders and the variables of a prediction.
func (p prediction) mustHave(t *testing.T, found findings) {
	t.Helper()
	if found.Open != "" || found.OpenOwn != "" {
		t.Errorf("opening the device ends with %q, and one of its own with %q", found.Open, found.OpenOwn)
	}
	if !maps.Equal(found.Content, content) {
		t.Errorf("the folders contain %v", found.Content)
	}
	for folder, outcome := range found.Write {
		if outcome != "read-only file system" {
			t.Errorf("writing to %s ends with %q", folder, outcome)
		}
	}
	for _, pod := range p {
		if pod.Admitted && maps.Equal(pod.Container.Envs, found.hints()) {
			return
		}
	}
	t.Errorf("the container has %v, predicted was %+v", found.hints(), p)
}

// hints are the variables that a container has in addition to those of a container without devices.
func (f findings) hints() map[string]string {
	found := map[string]string{}
	for _, variable := range f.Environment {
		name, value, _ := strings.Cut(variable, "=")
		if !slices.Contains([]string{"PATH", "HOSTNAME", "HOME"}, name) && !strings.HasPrefix(name, "KUBERNETES_") {
			found[name] = value
		}
	}
	return found
}

// mustKeep fails if a container is another one than before.
func mustKeep(t *testing.T, containers map[string]string) {
	t.Helper()
	for name, id := range containers {
		if now := awaitContainer(t, name, ""); now != id {
			t.Errorf("pod %s had the container %s, and has %s", name, id, now)
		}
	}
}

func printLogs() {
	logs, _ := filepath.Glob(sharedFolder + "/*.log")
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		lines := strings.Split(string(text), "\n")
		fmt.Printf("%s:\n%s\n", log, strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}
