package linux_node

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	manifest := readManifest(t)
	must(t, prepare(manifest))
	containerd := startContainerd(t)
	program, err := exec.LookPath("check")
	must(t, err)
	must(t, writeImage("/tmp/check.tar", checkImage, program))
	importImage(t, "/tmp/check.tar")
	importImage(t, sharedFolder+"/plugin.tar")
	startKubelet(t)
	plugin := startPlugin(t)

	containers := map[string]string{}
	step(t, "a pod without a device runs", func(t *testing.T) {
		addCheckPod(t, "plain", 0)
		containers["plain"] = awaitContainer(t, "plain", "")
		if environment := awaitEnvironment(t, "plain"); slices.ContainsFunc(environment, isHint) {
			t.Errorf("the container has something of a device: %v", environment)
		}
	})
	step(t, "a container with a device runs with the variables that simulate predicts", func(t *testing.T) {
		addCheckPod(t, "first", 1)
		containers["first"] = awaitContainer(t, "first", "")
		environment := awaitEnvironment(t, "first")
		found := slices.DeleteFunc(slices.Clone(environment), func(variable string) bool { return !isHint(variable) })
		slices.Sort(found)
		predicted := predict(t)
		// Which of the two equal GPUs a container gets is the kubelet's choice.
		if !slices.ContainsFunc(predicted, func(variables []string) bool { return slices.Equal(found, variables) }) {
			t.Errorf("the container has %q, predicted were %q", found, predicted)
		}
	})
	step(t, "a pod is refused when too few devices are free", func(t *testing.T) {
		addCheckPod(t, "refused", 2)
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
		addCheckPod(t, "second", 0)
		containers["second"] = awaitContainer(t, "second", "")
		mustKeep(t, containers)
	})
	step(t, "the plugin runs from its image as in the chart", func(t *testing.T) {
		plugin.kill()
		addPod(t, "plugin", manifest.podSpec())
		eventually(t, "the pod of the plugin is ready", func() error {
			pods, err := listPods()
			for _, condition := range pods["plugin"].Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("%+v %w", pods["plugin"].Status, err)
		})
		mustKeep(t, containers)
	})
}

// manifest is what the tests need of the chart.
type manifest struct {
	Data map[string]string
	Spec struct{ Template struct{ Spec map[string]any } }
}

// readManifest reads the ConfigMap and the DaemonSet.
func readManifest(t *testing.T) manifest {
	t.Helper()
	text, err := os.ReadFile(sharedFolder + "/demonstration.yml")
	must(t, err)
	var found manifest
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		must(t, yaml.Unmarshal(document, &found))
	}
	return found
}

// podSpec returns the pod of the DaemonSet, without what needs a cluster.
func (m manifest) podSpec() map[string]any {
	spec := m.Spec.Template.Spec
	delete(spec, "nodeSelector")
	spec["hostNetwork"] = true
	for _, volume := range spec["volumes"].([]any) {
		volume := volume.(map[string]any)
		if volume["configMap"] != nil {
			delete(volume, "configMap")
			volume["hostPath"] = map[string]string{"path": sharedFolder}
		}
	}
	spec["containers"].([]any)[0].(map[string]any)["imagePullPolicy"] = "Never"
	return spec
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
func prepare(manifest manifest) error {
	if err := os.MkdirAll(manifests, 0o755); err != nil {
		return err
	}
	for path, text := range map[string][]byte{
		sharedFolder + "/containerd.toml": []byte(containerdConfiguration),
		sharedFolder + "/kubelet.json":    mustJSON(kubeletConfiguration),
		inventory:                         []byte(manifest.Data["inventory.yaml"]),
	} {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// predict returns the variables that `simulate` says the containers of pods get.
func predict(t *testing.T) (pods [][]string) {
	t.Helper()
	text, err := run("directx-device-plugin", "simulate", "--driver-model=wddm", "--inventory", inventory, "--output", "json")
	must(t, err)
	var output struct {
		Pods []struct {
			Container struct{ Envs map[string]string }
		}
	}
	must(t, json.Unmarshal([]byte(text), &output))
	for _, pod := range output.Pods {
		variables := []string{}
		for name, value := range pod.Container.Envs {
			variables = append(variables, name+"="+value)
		}
		slices.Sort(variables)
		pods = append(pods, slices.DeleteFunc(variables, func(variable string) bool { return !isHint(variable) }))
	}
	return pods
}

// isHint reports whether a variable names a device of the container.
func isHint(variable string) bool { return strings.HasPrefix(variable, "DIRECTX_") }

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
