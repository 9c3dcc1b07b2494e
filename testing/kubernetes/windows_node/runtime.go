package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// pauseImage is the first one with layers for Windows Server 2022 and 2025.
	pauseImage = "registry.k8s.io/pause:3.10.2"
	// displayClass is what makes Windows show a container every display adapter.
	displayClass = "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599"
	// computeArrival and displayArrival are classes that drivers register in addition
	// (docs/configuration.md). Whether HCS accepts them is not known.
	computeArrival = "class/1024E4C9-47C9-48D3-B4A8-F9DF78523B53"
	displayArrival = "class/1CA05180-A699-450A-9A0C-DE4FBE3DDD89"
	// driverStore is where a container with that class has the drivers of the host.
	driverStore = `C:\Windows\System32\HostDriverStore\FileRepository`
	// mountedFile is a file that no Windows has.
	mountedFile = `C:\Windows\System32\windows-node-test.dll`
	// mountedFile32 is such a file for 32-bit programs. Nanoserver has no such folder.
	mountedFile32 = `C:\Windows\SysWOW64\windows-node-test.dll`
)

// containerd runs containerd as a service: HostProcess containers need one that runs as SYSTEM.
func (n *node) containerd(ctx context.Context) ([]string, error) {
	in := func(name string) string { return filepath.Join(n.folder, "containerd", name) }
	if err := os.MkdirAll(in(""), 0o755); err != nil {
		return nil, err
	}
	// In TOML, nothing is special between single quotes.
	configuration := fmt.Sprintf(`version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '%s'
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['%s']
conf_dir = '%s'
[plugins.'io.containerd.internal.v1.opt']
path = '%s'
`, pauseImage, filepath.Dir(n.paths[natPlugin]), filepath.Join(n.folder, "cni"), in("opt"))
	if err := os.WriteFile(in("config.toml"), []byte(configuration), 0o644); err != nil {
		return nil, err
	}
	arguments := []string{"--log-level=debug", "--config", in("config.toml"), "--address", containerdAddress,
		"--root", in("root"), "--state", in("state"), "--log-file", filepath.Join(n.logs, "containerd.log"), "--service-name", serviceName}
	if _, err := n.run(ctx, "containerd", append(arguments, "--register-service")...); err != nil {
		return nil, err
	}
	n.later("service "+serviceName, n.removeContainerd)
	if _, err := n.run(ctx, "sc", "start", serviceName); err != nil {
		return nil, err
	}
	return nil, eventually(ctx, "containerd is ready", func() (bool, error) {
		text, err := n.crictl(ctx, "info")
		if err != nil {
			return false, err
		}
		return runtimeReady(text)
	})
}

func (n *node) removeContainerd(ctx context.Context) error {
	_, stopError := n.run(ctx, "sc", "stop", serviceName)
	if stopError == nil {
		_, stopError = n.awaitService(ctx, serviceName, stopped, 0)
	}
	// containerd can do this, too, but first it creates the folders of its defaults.
	_, err := n.run(ctx, "sc", "delete", serviceName)
	return errors.Join(stopError, err)
}

// crictl calls the container runtime as the kubelet does.
func (n *node) crictl(ctx context.Context, arguments ...string) (string, error) {
	return n.run(ctx, "crictl", append([]string{"--runtime-endpoint", n.endpoint, "--timeout", "10m"}, arguments...)...)
}

// runtimeReady reads the output of `crictl info`.
func runtimeReady(text string) (bool, error) {
	var info struct {
		Status struct {
			Conditions []struct {
				Type, Reason, Message string
				Status                bool
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return false, err
	}
	ready := 0
	for _, condition := range info.Status.Conditions {
		// containerd has others, for example about deprecated options.
		if condition.Type != "RuntimeReady" && condition.Type != "NetworkReady" {
			continue
		}
		if !condition.Status {
			return false, fmt.Errorf("%s: %s: %s", condition.Type, condition.Reason, condition.Message)
		}
		ready++
	}
	return ready == 2, nil
}

// pullImages pulls the images. Their layers are deleted before containerd ends: Windows refuses to
// delete their files in another way.
func (n *node) pullImages(ctx context.Context) ([]string, error) {
	n.later("images", n.removeImages)
	for _, image := range []string{pauseImage, n.image} {
		if _, err := n.crictl(ctx, "pull", image); err != nil {
			return nil, &problem{"an image cannot be pulled", "let this host reach its registry, and check the name", err}
		}
	}
	return []string{"images=2"}, nil
}

func (n *node) ctr(ctx context.Context, arguments ...string) (string, error) {
	return n.run(ctx, "ctr", append([]string{"--address", containerdAddress, "--namespace", "k8s.io"}, arguments...)...)
}

func (n *node) removeImages(ctx context.Context) error {
	if _, err := n.crictl(ctx, "rmp", "--all", "--force"); err != nil {
		return err
	}
	names, err := n.ctr(ctx, "images", "list", "--quiet")
	if err != nil || strings.TrimSpace(names) == "" {
		return err
	}
	_, err = n.ctr(ctx, append([]string{"images", "rm", "--sync"}, strings.Fields(names)...)...)
	return err
}

// hostMount is a mount, in the names of the CRI.
type hostMount struct {
	HostPath      string `json:"host_path"`
	ContainerPath string `json:"container_path"`
	ReadOnly      bool   `json:"readonly"`
}

// container is one without the kubelet.
type container struct {
	// user is one of the image.
	user    string
	devices []string
	mounts  []hostMount
	// commands are for cmd.exe, before those of every container.
	commands []string
}

// The users of every Windows image. Only the second one may write to System32.
const user, administrator = "ContainerUser", "ContainerAdministrator"

// runContainer runs a container without the kubelet, and returns what it wrote.
func (n *node) runContainer(ctx context.Context, name string, c container) (string, error) {
	folder := filepath.Join(n.folder, "cri", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	sandbox, config := filepath.Join(folder, "pod.json"), filepath.Join(folder, "container.json")
	if err := writeJSON(sandbox, map[string]any{
		"metadata":      map[string]any{"name": name, "namespace": "default", "uid": name},
		"log_directory": folder, "windows": map[string]any{},
	}); err != nil {
		return "", err
	}
	given := []map[string]string{}
	for _, device := range c.devices {
		given = append(given, map[string]string{"host_path": device})
	}
	if err := writeJSON(config, map[string]any{
		"metadata": map[string]any{"name": name}, "image": map[string]string{"image": n.image},
		"command": script(slices.Concat(c.commands, endAfterChecks)), "log_path": "container.log", "devices": given, "mounts": c.mounts,
		"windows": map[string]any{"security_context": map[string]string{"run_as_username": c.user}},
	}); err != nil {
		return "", err
	}
	pod, err := n.crictl(ctx, "runp", sandbox)
	if err != nil {
		return "", err
	}
	pod = strings.TrimSpace(pod)
	// The kubelet would kill it.
	defer func() { _, _ = n.crictl(context.WithoutCancel(ctx), "rmp", "--force", pod) }()
	id, err := n.crictl(ctx, "create", pod, config, sandbox)
	if err != nil {
		return "", err
	}
	id = strings.TrimSpace(id)
	if _, err := n.crictl(ctx, "start", id); err != nil {
		return "", err
	}
	if err := eventually(ctx, "the container has ended", func() (bool, error) {
		found, err := n.inspect(ctx, id)
		return found.Status.State == "CONTAINER_EXITED", err
	}); err != nil {
		return "", err
	}
	return n.crictl(ctx, "logs", id)
}

// inspection is the output of `crictl inspect`.
type inspection struct {
	Status struct {
		State    string `json:"state"`
		ExitCode int64  `json:"exitCode"`
	} `json:"status"`
	Info struct {
		// Config is what the kubelet has asked for.
		Config struct {
			Devices []struct {
				HostPath string `json:"host_path"`
			} `json:"devices"`
			Mounts []hostMount `json:"mounts"`
		} `json:"config"`
	} `json:"info"`
}

func (n *node) inspect(ctx context.Context, container string) (inspection, error) {
	var found inspection
	text, err := n.crictl(ctx, "inspect", container)
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	return found, err
}

// withoutDevice runs a container without a device, which shows that the other ones have theirs
// because they asked for it.
func (n *node) withoutDevice(ctx context.Context) ([]string, error) {
	return nil, n.mustSee(ctx, "plain", container{user: user}, checks{"folder": "no"})
}

// withClass runs a container with the class of display adapters.
func (n *node) withClass(ctx context.Context) ([]string, error) {
	return nil, n.mustSee(ctx, "class", container{user: user, devices: []string{displayClass}}, checks{"folder": "yes"})
}

// tryClasses runs a container with each class that could contain devices that only compute, and
// measures which of them Windows accepts.
func (n *node) tryClasses(ctx context.Context) ([]string, error) {
	var measured []string
	var refused []error
	for _, class := range []string{displayClass, computeArrival, displayArrival} {
		guid := strings.TrimPrefix(class, "class/")
		result := "refused"
		output, err := n.runContainer(ctx, guid, container{user: user, devices: []string{class}})
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", guid, err))
		} else {
			result = "accepted,drivers:" + parseOutput(output).checks["folder"]
		}
		measured = append(measured, guid+"="+result)
	}
	if len(refused) > 0 {
		return measured, &problem{"Windows does not accept every device class", "do not use the others as deviceClass", errors.Join(refused...)}
	}
	return measured, nil
}

// withFile runs containers with a read-only file in System32.
func (n *node) withFile(ctx context.Context) ([]string, error) {
	file := filepath.Join(n.folder, "mounted.dll")
	const content = "unchanged"
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		return nil, err
	}
	mounts := []hostMount{{file, mountedFile, true}}
	if err := n.mustSee(ctx, "file", container{user: user, mounts: mounts}, checks{"file": "yes"}); err != nil {
		return nil, err
	}
	if err := n.mustSee(ctx, "write", container{user: administrator, mounts: mounts}, checks{"write": "no"}); err != nil {
		return nil, err
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != content {
		return nil, &problem{"a container has changed a read-only file of the host", "report this to containerd", err}
	}
	return nil, nil
}

// withFile32 runs a container with a file in a folder that the image lacks.
func (n *node) withFile32(ctx context.Context) ([]string, error) {
	file := filepath.Join(n.folder, "mounted.dll")
	return nil, n.mustSee(ctx, "file32", container{user: user, mounts: []hostMount{{file, mountedFile32, true}}}, checks{"file32": "yes"})
}

// withUnknownLocation must fail: the host has no device there. If a container starts, Windows
// ignores location paths.
func (n *node) withUnknownLocation(ctx context.Context) ([]string, error) {
	device := "vpci-location-path://PCIROOT(0)#PCI(FF00)"
	if _, err := n.runContainer(ctx, "location", container{user: user, devices: []string{device}}); err == nil {
		return nil, &problem{"a container started with a device that does not exist", "report this to hcsshim", nil}
	}
	return nil, ctx.Err()
}

// runProgram runs a program that the plugin mounts from the driver and Windows does not, such as
// nvidia-smi.exe. Windows Server 2025 refuses containers with some files of the driver, and it is not
// known whether with this one.
func (n *node) runProgram(ctx context.Context) ([]string, error) {
	if _, err := n.predict(ctx, onlyAdditional); err != nil {
		return nil, err
	}
	wanted := n.wanted[0]
	// The pods of the other steps have the files that are mounted by default.
	if _, err := n.predict(ctx, n.configuration()); err != nil {
		return nil, err
	}
	c := container{user: user}
	for _, device := range wanted.Devices {
		c.devices = append(c.devices, device.HostPath)
	}
	program := ""
	for _, mount := range wanted.Mounts {
		c.mounts = append(c.mounts, hostMount(mount))
		if program == "" && strings.HasSuffix(mount.ContainerPath, ".exe") {
			program = mount.ContainerPath
		}
	}
	if program == "" {
		return nil, &problem{"the plugin mounts no program of this driver", "use a GPU of NVIDIA", nil}
	}
	c.commands = []string{program + " & echo check program !errorlevel!"}
	output, err := n.runContainer(ctx, "program", c)
	if err != nil {
		return []string{"started=no"}, err
	}
	found := parseOutput(output).checks
	return []string{"exit=" + found["program"]}, found.mustInclude(checks{"program": "0"})
}

func (n *node) mustSee(ctx context.Context, name string, c container, wanted checks) error {
	output, err := n.runContainer(ctx, name, c)
	if err != nil {
		return err
	}
	return parseOutput(output).checks.mustInclude(wanted)
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
