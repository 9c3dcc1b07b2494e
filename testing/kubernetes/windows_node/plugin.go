package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// display is the resource of GPUs.
const display = "directx.microsoft.com/display"

// withoutLauncher mounts the files of the driver as by default: Windows Server 2025 refuses containers
// with some of them (fixtures/README.md). The made-up host has an older build, on which they are
// mounted. withLauncher also mounts directx-visible, which only Windows and no image of the plugin has.
// without32Bit is for images without C:\Windows\SysWOW64, such as nanoserver: a mount into it may keep a
// container from starting. onlyAdditional mounts what the driver does not name, such as nvidia-smi.exe.
const (
	withoutLauncher = "runtimeMounts: auto\n"
	withLauncher    = withoutLauncher + "visibility: required\n"
	without32Bit    = "runtimeFilesWow64: false\n"
	onlyAdditional  = "runtimeMounts: extra\n"
)

func (n *node) configuration() string {
	switch {
	case n.os != "windows":
		return withoutLauncher
	case n.live:
		return withLauncher
	default:
		return withLauncher + without32Bit
	}
}

// simulated is the folder that `simulate` makes up for directx-visible.
const simulated = `\simulated\`

// containerOptions is what a container gets for its devices, as `simulate` predicts it.
type containerOptions struct {
	Devices []struct {
		HostPath string `json:"hostPath"`
	} `json:"devices"`
	Mounts []struct {
		HostPath      string `json:"hostPath"`
		ContainerPath string `json:"containerPath"`
		ReadOnly      bool   `json:"readOnly"`
	} `json:"mounts"`
	Envs map[string]string `json:"envs"`
}

func (n *node) inventory() string { return filepath.Join(n.folder, "inventory.json") }

func (n *node) configurationFile() string { return filepath.Join(n.folder, "plugin.yaml") }

// serveArguments are those of the plugin. Without an inventory it finds the devices of the host.
func (n *node) serveArguments() []string {
	arguments := []string{"serve", "--config", n.configurationFile()}
	if !n.live {
		arguments = append(arguments, "--inventory", n.inventory())
	}
	return arguments
}

// describeHost writes the inventory, and predicts what containers get. An inventory that is not
// recorded has one device, whose driver folder and file exist on this host.
func (n *node) describeHost(ctx context.Context) ([]string, error) {
	if n.live {
		if _, err := n.run(ctx, "plugin", "record", "--output", n.inventory()); err != nil {
			return nil, err
		}
		return n.predict(ctx, n.configuration())
	}
	folder, file, err := driverFile(n.onDrive("Windows", "System32", "DriverStore", "FileRepository"))
	if err != nil {
		return nil, err
	}
	if err := writeJSON(n.inventory(), madeUpInventory(folder, file)); err != nil {
		return nil, err
	}
	return n.predict(ctx, n.configuration())
}

// predict asks what containers get that request a device.
func (n *node) predict(ctx context.Context, configuration string) ([]string, error) {
	if err := os.WriteFile(n.configurationFile(), []byte(configuration), 0o644); err != nil {
		return nil, err
	}
	// Without --pod, every device gets a pod.
	text, err := n.run(ctx, "plugin", "simulate", "--inventory", n.inventory(), "--config", n.configurationFile(), "--output", "json")
	if err != nil {
		return nil, err
	}
	if n.wanted, err = parsePrediction(text); err != nil {
		return nil, err
	}
	if len(n.wanted) == 0 {
		return nil, &problem{"the plugin finds no GPU", "leave out --live, or run `directx-device-plugin doctor`", nil}
	}
	return []string{fmt.Sprintf("devices=%d", len(n.wanted))}, nil
}

// driverFile returns a folder of the driver store with a library.
func driverFile(repository string) (folder, file string, err error) {
	libraries, err := filepath.Glob(filepath.Join(repository, "*", "*.dll"))
	if err == nil && len(libraries) == 0 {
		err = errors.New("no library in " + repository)
	}
	if err != nil {
		return "", "", &problem{"the driver store has no library", "use a complete Windows Server", err}
	}
	return filepath.Dir(libraries[0]), filepath.Base(libraries[0]), nil
}

// madeUpInventory describes a host with one GPU, which containers get by its class, because that is
// what a host without GPU can give them. `record` writes this format.
func madeUpInventory(folder, file string) map[string]any {
	adapter := map[string]any{
		"luid": 26100, "attributes": []string{"d3d11-graphics", "d3d12-graphics", "d3d12-core-compute"}, "hardware": true,
		"hardwareId":        map[string]int{"vendor": 0x1414, "device": 0xFFFF, "subsystem": 0, "revision": 0},
		"driverDescription": "made up for a test",
		"pnp": map[string]any{
			"id": `PCI\VEN_1414&DEV_FFFF\WINDOWS-NODE`, "description": "made up for a test", "manufacturer": "nobody",
			"driverKey": `{4d36e968-e325-11ce-bfc1-08002be10318}\9999`, "locationPaths": []string{"PCIROOT(0)#PCI(FF00)"}, "problemCode": 0,
		},
		"driverStore": map[string]any{
			"path": folder, "files": []string{file},
			"copyToVm": map[string]any{"CopyToVmWhenNewer": map[string]any{"01": []string{file, "windows-node-test.dll"}}},
		},
	}
	return map[string]any{
		"schema": "directx-inventory/v1",
		// The build of Windows Server 2019, which knows no location paths.
		"host":     map[string]any{"build": "10.0.17763.1"},
		"adapters": []any{adapter},
	}
}

// parsePrediction reads the output of `simulate`: the containers of the pods with a GPU.
func parsePrediction(text string) ([]containerOptions, error) {
	var prediction struct {
		Pods []struct {
			Resource  string           `json:"resource"`
			Admitted  bool             `json:"admitted"`
			Container containerOptions `json:"container"`
		} `json:"pods"`
	}
	if err := json.Unmarshal([]byte(text), &prediction); err != nil {
		return nil, err
	}
	var wanted []containerOptions
	for _, pod := range prediction.Pods {
		if pod.Resource == display && pod.Admitted {
			wanted = append(wanted, pod.Container)
		}
	}
	return wanted, nil
}

// register starts the plugin and waits until the kubelet has its devices.
func (n *node) register(ctx context.Context) ([]string, error) {
	var err error
	if n.plugin, err = n.startDaemon("plugin", n.serveArguments()...); err != nil {
		return nil, err
	}
	return nil, n.awaitReady(ctx)
}

// mustHaveFiles fails unless every file that a container will get exists: containerd creates a folder in the place of one that
// does not. The prediction then names the folder with directx-visible.
func (n *node) mustHaveFiles() error {
	if n.os != "windows" {
		return nil
	}
	for _, wanted := range n.wanted {
		for i := range wanted.Mounts {
			path := &wanted.Mounts[i].HostPath
			if err := n.findProvided(path); err != nil {
				return err
			}
			if file, err := os.Stat(*path); err != nil || !file.Mode().IsRegular() {
				return &problem{"a file that containers will get is missing", "read plugin.log", fmt.Errorf("%s: %v", *path, err)}
			}
		}
	}
	return nil
}

// findProvided replaces the path of a file of directx-visible that `simulate` makes up by that of the file which the plugin has
// written.
func (n *node) findProvided(path *string) error {
	root, name, found := strings.Cut(*path, simulated)
	if !found {
		return nil
	}
	wanted, err := os.ReadFile(filepath.Join(n.programs, name))
	if err != nil {
		return &problem{name + " is missing", "name the folder of the programs with --programs", err}
	}
	folders, err := os.ReadDir(root)
	for _, folder := range folders {
		file := filepath.Join(root, folder.Name(), name)
		if content, err := os.ReadFile(file); err == nil && bytes.Equal(content, wanted) {
			*path = file
			return nil
		}
	}
	return &problem{"the plugin has not provided directx-visible", "read plugin.log", fmt.Errorf("%s in %s: %v", name, root, err)}
}

func (n *node) awaitReady(ctx context.Context) error {
	return eventually(ctx, "the kubelet has the devices", func() (bool, error) {
		if n.plugin != nil && n.plugin.alive() != nil {
			return false, &problem{"the plugin has ended", "read plugin.log", n.plugin.alive()}
		}
		err := n.mustBeReady(ctx)
		return err == nil, err
	})
}

// mustBeReady asks the plugin whether the kubelet has received its devices.
func (n *node) mustBeReady(ctx context.Context) error {
	text, err := n.run(ctx, "plugin", "status", "--output", "json")
	if err != nil {
		return err
	}
	return parseStatus(text)
}

// parseStatus reads the output of `status`.
func parseStatus(text string) error {
	var status struct {
		Ready     bool `json:"ready"`
		Resources []struct {
			Name  string `json:"name"`
			Ready bool   `json:"ready"`
		} `json:"resources"`
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return err
	}
	for _, resource := range status.Resources {
		if resource.Name == display && resource.Ready && status.Ready {
			return nil
		}
	}
	return errors.New("not ready: " + tail(text))
}

// mustEqual fails unless the container runtime was asked for what was predicted. It was also asked
// for what every pod gets, such as a file for names of hosts.
func (wanted containerOptions) mustEqual(got inspection) error {
	asked, predicted := []string{}, []string{}
	for _, device := range got.Info.Config.Devices {
		asked = append(asked, "device "+device.HostPath)
	}
	for _, mount := range got.Info.Config.Mounts {
		path := strings.ToLower(mount.ContainerPath)
		if strings.HasPrefix(path, `c:\windows\`) && !strings.HasSuffix(path, `\drivers\etc\hosts`) {
			asked = append(asked, mount.text())
		}
	}
	for _, device := range wanted.Devices {
		predicted = append(predicted, "device "+device.HostPath)
	}
	for _, mount := range wanted.Mounts {
		predicted = append(predicted, hostMount(mount).text())
	}
	slices.Sort(asked)
	slices.Sort(predicted)
	if !slices.Equal(asked, predicted) {
		cause := fmt.Errorf("containerd was asked for\n%s\npredicted was\n%s", strings.Join(asked, "\n"), strings.Join(predicted, "\n"))
		return &problem{"the container differs from the prediction of `simulate`", "compare both in the log", cause}
	}
	return nil
}

func (m hostMount) text() string {
	return fmt.Sprint("mount ", m.HostPath, " at ", m.ContainerPath, ", read-only: ", m.ReadOnly)
}

// predictionFor returns the prediction with the variables that the container has.
func (n *node) predictionFor(variables map[string]string) (containerOptions, error) {
	for _, wanted := range n.wanted {
		if maps.Equal(onlyDirectX(wanted.Envs), variables) {
			return wanted, nil
		}
	}
	cause := fmt.Errorf("the container has %v", variables)
	return containerOptions{}, &problem{"the variables of the container differ from those of `simulate`", "compare both in the log", cause}
}

func onlyDirectX(variables map[string]string) map[string]string {
	found := map[string]string{}
	for name, value := range variables {
		if strings.HasPrefix(name, variablePrefix) {
			found[name] = value
		}
	}
	return found
}
