package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// mountPoint is where containerd puts the image and the volumes of a HostProcess container.
	// containerd replaces it in commands and in environment variables.
	mountPoint = "%CONTAINER_SANDBOX_MOUNT_POINT%"
	// executable is the program in the image.
	executable = mountPoint + `\directx-device-plugin.exe`
	// waitLimit bounds every wait for something that takes milliseconds on an idle machine.
	waitLimit = 2 * time.Minute
)

// container is the container of a DaemonSet, run on this machine: a folder takes the place of
// the mount point.
type container struct {
	t    *testing.T
	name string
	root string
	// arguments are those of `serve`, without the log options.
	arguments []string
	// logOptions are the log options of `serve`.
	logOptions []string
	// probes are the arguments of the probes.
	probes [][]string
	// environment is the process environment of the container.
	environment []string
	// variables are the names of the environment variables that the manifest sets.
	variables []string
}

// newContainer writes the volumes of the container and reads its commands. configMaps are
// those of the cluster.
func newContainer(t *testing.T, daemonSet *appsv1.DaemonSet, configMaps []*corev1.ConfigMap) *container {
	t.Helper()
	pod := daemonSet.Spec.Template.Spec
	spec := pod.Containers[0]
	c := &container{t: t, name: daemonSet.Name, root: t.TempDir(), environment: os.Environ()}
	for _, mount := range spec.VolumeMounts {
		volume := volumeOf(pod, mount)
		if volume.ConfigMap == nil {
			continue // a folder of the node
		}
		for path, text := range volumeFiles(t, volume, daemonSet.Namespace, configMaps) {
			file := filepath.Join(c.root, filepath.FromSlash(mount.MountPath), path)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	executable := executable
	if isLinux(daemonSet) {
		executable = "/directx-device-plugin"
	}
	if !slices.Equal(spec.Command, []string{executable}) {
		t.Fatalf("%s runs %q, expected %q", c.name, spec.Command, executable)
	}
	if len(spec.Args) == 0 || spec.Args[0] != "serve" {
		t.Fatalf("%s has the arguments %q, expected serve first", c.name, spec.Args)
	}
	for _, word := range spec.Args[1:] {
		// As the kubelet does.
		word = strings.ReplaceAll(word, "$(NODE_IP)", "127.0.0.1")
		if strings.HasPrefix(word, "--log-") {
			c.logOptions = append(c.logOptions, word)
		} else {
			c.arguments = append(c.arguments, c.expand(word))
		}
	}
	for _, probe := range []*corev1.Probe{spec.StartupProbe, spec.ReadinessProbe, spec.LivenessProbe} {
		if probe.Exec.Command[0] != executable {
			t.Fatalf("%s: a probe runs %q, expected %q", c.name, probe.Exec.Command[0], executable)
		}
		c.probes = append(c.probes, probe.Exec.Command[1:])
	}
	for _, variable := range spec.Env {
		c.variables = append(c.variables, variable.Name)
		c.environment = append(c.environment, variable.Name+"="+c.expand(variable.Value))
	}
	return c
}

func volumeOf(pod corev1.PodSpec, mount corev1.VolumeMount) corev1.Volume {
	return pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })]
}

// volumeFiles returns the files of a ConfigMap volume, as the kubelet writes them.
func volumeFiles(t *testing.T, volume corev1.Volume, namespace string, configMaps []*corev1.ConfigMap) map[string]string {
	t.Helper()
	found := slices.IndexFunc(configMaps, func(c *corev1.ConfigMap) bool {
		return c.Name == volume.ConfigMap.Name && c.Namespace == namespace
	})
	if found < 0 {
		t.Fatalf("there is no ConfigMap %s/%s", namespace, volume.ConfigMap.Name)
	}
	data := configMaps[found].Data
	if len(volume.ConfigMap.Items) == 0 {
		return data
	}
	files := map[string]string{}
	for _, item := range volume.ConfigMap.Items {
		text, ok := data[item.Key]
		if !ok {
			t.Fatalf("the ConfigMap %s has no key %s", volume.ConfigMap.Name, item.Key)
		}
		files[item.Path] = text
	}
	return files
}

// expand replaces the mount point in a path. On Linux, the mount point is the root.
func (c *container) expand(word string) string {
	for _, option := range []string{"--config=", inventoryOption} {
		if path, found := strings.CutPrefix(word, option+"/"); found {
			return option + filepath.Join(c.root, path)
		}
	}
	replaced := strings.ReplaceAll(word, mountPoint, c.root)
	if replaced != word {
		replaced = strings.ReplaceAll(replaced, `\`, "/")
	}
	return replaced
}

func (c *container) run(arguments ...string) (output []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = c.environment
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err = command.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w\n%s", command, err, messages.String())
	}
	return output, err
}

// mustAcceptCommands fails unless the program knows every option of the container's command
// and of its probes.
func (c *container) mustAcceptCommands() {
	c.t.Helper()
	serve := append(append([]string{"serve"}, c.arguments...), c.logOptions...)
	for _, arguments := range append(c.probes, serve) {
		help, err := c.run(append(slices.Clone(arguments), "--help")...)
		usage := "Usage: directx-device-plugin " + arguments[0]
		if err != nil || !strings.Contains(string(help), usage) {
			c.t.Errorf("%s: the program does not accept %q: %v", c.name, arguments, err)
		}
	}
}

// inventoryOption is the option with the host of a container.
const inventoryOption = "--inventory="

// configuration returns the arguments that `simulate` has, too, without the inventory.
func (c *container) configuration() []string {
	return slices.DeleteFunc(slices.Clone(c.arguments), func(argument string) bool {
		return strings.HasPrefix(argument, "--listen=") || strings.HasPrefix(argument, inventoryOption) || argument == "--demonstration"
	})
}

// inventoryPath returns the path of a recorded host, or of the container's own inventory.
func (c *container) inventoryPath(name string) string {
	c.t.Helper()
	if name != own {
		return inventoryPath(name)
	}
	for _, argument := range c.arguments {
		if path, found := strings.CutPrefix(argument, inventoryOption); found {
			return path
		}
	}
	c.t.Fatalf("%s has no inventory", c.name)
	return ""
}

// prediction is what `simulate` prints as JSON.
type prediction struct {
	Resources []struct {
		Name     string `json:"name"`
		Capacity int64  `json:"capacity"`
	} `json:"resources"`
	Pods []struct {
		Container struct {
			Devices []json.RawMessage `json:"devices"`
		} `json:"container"`
	} `json:"pods"`
	Labels map[string]string `json:"labels"`
}

// simulate runs `simulate` with the container's configuration on a recorded host.
func (c *container) simulate(inventory string, options ...string) (found prediction) {
	c.t.Helper()
	arguments := append([]string{"simulate", "--output", "json", "--inventory", c.inventoryPath(inventory)}, c.configuration()...)
	output, err := c.run(append(arguments, options...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := json.Unmarshal(output, &found); err != nil {
		c.t.Fatalf("simulate printed no JSON: %v\n%s", err, output)
	}
	return found
}

// capacity returns the number of devices of each resource that the container advertises on a
// recorded host.
func (c *container) capacity(inventory string) map[string]int64 {
	c.t.Helper()
	capacity := map[string]int64{}
	for _, resource := range c.simulate(inventory).Resources {
		capacity[resource.Name] = resource.Capacity
	}
	return capacity
}

// mustAdvertise fails unless the container advertises exactly these resources.
func (c *container) mustAdvertise(inventory string, expected map[string]int64) {
	c.t.Helper()
	if got := c.capacity(inventory); !maps.Equal(got, expected) {
		c.t.Errorf("%s on %s advertises %v, expected %v", c.name, inventory, got, expected)
	}
}

// mustReadConfiguration fails if the manifest sets a variable or has a file without effect.
func (c *container) mustReadConfiguration() {
	c.t.Helper()
	if unused := c.unusedConfiguration(); len(unused) > 0 {
		c.t.Errorf("%s: the program does not use %q", c.name, unused)
	}
}

// unusedConfiguration runs the container as a daemon and returns the environment variables and
// the files of the manifest that its log does not name.
func (c *container) unusedConfiguration() []string {
	c.t.Helper()
	var expected []string
	for _, variable := range c.variables {
		// The name and the address of the node are for metrics and the UID of the pod is for its probes;
		// none of them is configuration.
		switch variable {
		case "NODE_NAME", "NODE_IP", "POD_UID":
			continue
		}
		if !strings.HasSuffix(variable, "_CONFIG_FILE") {
			expected = append(expected, variable)
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.root, "etc/directx-device-plugins/*"))
	for _, file := range files {
		// The file of another driver model is for another DaemonSet.
		if model := strings.TrimSuffix(filepath.Base(file), ".yaml"); model == "config" || slices.Contains(c.arguments, model) {
			expected = append(expected, file)
		}
	}
	if len(expected) == 0 {
		return nil
	}
	sources := configurationSources(c.daemonLog())
	return slices.DeleteFunc(expected, func(source string) bool { return slices.Contains(sources, source) })
}

// configurationSources returns the files and variables that a log names for the driver models.
func configurationSources(log string) []string {
	var sources []string
	for line := range strings.Lines(log) {
		var entry struct{ File, Variables string }
		if json.Unmarshal([]byte(line), &entry) == nil {
			sources = append(sources, entry.File)
			sources = append(sources, strings.Split(entry.Variables, ", ")...)
		}
	}
	return sources
}

// daemonLog runs the container as a daemon until it has opened its sockets or has exited, and
// returns its log. A daemon logs its configuration before it opens its sockets.
func (c *container) daemonLog() string {
	c.t.Helper()
	directory := c.t.TempDir()
	arguments := append([]string{"serve", "--log-format=json", "--log-level=info",
		"--inventory", inventoryPath(twoT4), "--device-plugin-dir", directory}, c.configuration()...)
	command := exec.Command(program, arguments...)
	command.Env = c.environment
	var log bytes.Buffer
	command.Stderr = &log
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	sockets := func() int {
		found, _ := filepath.Glob(filepath.Join(directory, "*.sock"))
		return len(found)
	}
	for start := time.Now(); sockets() == 0 && len(exited) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > waitLimit {
			c.t.Errorf("%s: the daemon opens no socket", c.name)
			break
		}
	}
	// A thread writes the log, completely when the daemon shuts down. It may have exited already.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-time.After(waitLimit):
		c.t.Errorf("%s: the daemon does not shut down", c.name)
		_ = command.Process.Kill()
		<-exited
	}
	return log.String()
}

func inventoryPath(name string) string {
	path, err := filepath.Abs(filepath.Join(repository, "fixtures/inventories", name))
	if err != nil {
		panic(err) // the working directory of a test exists
	}
	return path
}
