package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pluginService is the plugin as a service.
const pluginService = "directx-device-plugin"

// installService installs the plugin as a service, instead of the process of the steps before.
func (n *node) installService(ctx context.Context) ([]string, error) {
	n.plugin.kill()
	n.plugin = nil
	// On runners, ordinary users may write to the folders of the program and of the inventory.
	arguments := append([]string{"service", "install", "--force", "--"}, n.serveArguments()[1:]...)
	if _, err := n.run(ctx, "plugin", append(arguments, "--log-file", filepath.Join(n.logs, "service.log"))...); err != nil {
		return nil, err
	}
	n.later("service "+pluginService, n.removeService)
	_, err := n.awaitService(ctx, pluginService, stopped, 0)
	return nil, err
}

func (n *node) startService(ctx context.Context) ([]string, error) {
	if _, err := n.run(ctx, "sc", "start", pluginService); err != nil {
		return nil, err
	}
	if _, err := n.awaitService(ctx, pluginService, running, 0); err != nil {
		return nil, err
	}
	return nil, n.awaitReady(ctx)
}

// failService ends the process of the service, as a crash would.
func (n *node) failService(ctx context.Context) ([]string, error) {
	failing, err := n.awaitService(ctx, pluginService, running, 0)
	if err != nil {
		return nil, err
	}
	if _, err := n.run(ctx, "taskkill", "/f", "/pid", strconv.Itoa(failing.process)); err != nil {
		return nil, err
	}
	if _, err := n.awaitService(ctx, pluginService, running, failing.process); err != nil {
		return nil, err
	}
	return nil, n.awaitReady(ctx)
}

func (n *node) stopService(ctx context.Context) ([]string, error) {
	if _, err := n.run(ctx, "sc", "stop", pluginService); err != nil {
		return nil, err
	}
	ended, err := n.awaitService(ctx, pluginService, stopped, 0)
	if err == nil && ended.exitCode != 0 {
		err = &problem{"the service did not end gracefully", "read service.log", fmt.Errorf("exit code %d", ended.exitCode)}
	}
	return nil, err
}

func (n *node) uninstallService(ctx context.Context) ([]string, error) {
	if _, err := n.run(ctx, "plugin", "service", "uninstall"); err != nil {
		return nil, err
	}
	return nil, n.mustHaveService(ctx, pluginService, false, "the service still exists", "read the log of this step")
}

// removeService removes the service unless a step has.
func (n *node) removeService(ctx context.Context) error {
	if state, err := n.run(ctx, "sc", "query", pluginService); err != nil && strings.Contains(state, noSuchService) {
		return nil
	}
	_, err := n.run(ctx, "plugin", "service", "uninstall")
	return err
}

// The states of a service (winsvc.h).
const (
	stopped = 1
	running = 4
)

// serviceState is what the service manager knows of a service.
type serviceState struct{ state, exitCode, process int }

// awaitService waits until a service has a state and another process than before.
func (n *node) awaitService(ctx context.Context, name string, state, before int) (found serviceState, err error) {
	err = eventually(ctx, fmt.Sprintf("the service %s has state %d", name, state), func() (bool, error) {
		text, err := n.run(ctx, "sc", "queryex", name)
		if err != nil {
			return false, err
		}
		found, err = parseService(text)
		return err == nil && found.state == state && (before == 0 || found.process != before), err
	})
	return found, err
}

// parseService reads what `sc queryex` prints: one line for each field of SERVICE_STATUS_PROCESS, in
// its order, as `NAME : NUMBER` with more words. Windows may translate the names and the words.
func parseService(text string) (serviceState, error) {
	const state, exitCode, process = 2, 3, 7
	var values []string
	for line := range strings.Lines(text) {
		if _, value, isField := strings.Cut(line, ":"); isField {
			values = append(values, value)
		}
	}
	var failure error
	number := func(field int) int {
		var word string
		if field < len(values) {
			word, _, _ = strings.Cut(strings.TrimSpace(values[field]), " ")
		}
		number, err := strconv.Atoi(word)
		if err != nil && failure == nil {
			what := fmt.Sprintf("`sc queryex` does not print a number as field %d", field)
			failure = &problem{what, "compare its output with parseService in service.go", errors.New(text)}
		}
		return number
	}
	found := serviceState{state: number(state), exitCode: number(exitCode), process: number(process)}
	return found, failure
}

// describeNode keeps what `doctor` and `record` report about this host. Without a GPU, `doctor` fails.
func (n *node) describeNode(ctx context.Context) ([]string, error) {
	report, err := n.run(ctx, "plugin", "doctor", "--output", "markdown")
	if report == "" {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(n.logs, "doctor.md"), []byte(report), 0o644); err != nil {
		return nil, err
	}
	_, err = n.run(ctx, "plugin", "record", "--output", filepath.Join(n.logs, "inventory.yaml"))
	return nil, err
}

// visible is a pod like that of the chart, with another folder.
const visiblePodName = "directx-visible"

func (n *node) visiblePod(image string) map[string]any {
	program := `%CONTAINER_SANDBOX_MOUNT_POINT%\directx-visible.exe`
	container := func(name string, arguments ...string) []any {
		return []any{map[string]any{
			"name": name, "image": image, "imagePullPolicy": "Never", "command": append([]string{program}, arguments...),
		}}
	}
	spec := hostProcessSpec()
	spec["initContainers"], spec["containers"] = container("copy", "--install", n.visibleFolder()), container("wait", "--wait")
	return manifest(visiblePodName, spec)
}

func (n *node) visibleFolder() string { return filepath.Join(n.folder, "directx-visible") }

// installVisible runs the pod that copies directx-visible to the node and waits.
func (n *node) installVisible(ctx context.Context) ([]string, error) {
	image, err := n.importImage(ctx, n.visibleImage)
	if err != nil {
		return nil, err
	}
	if err := n.addPod(visiblePodName, n.visiblePod(image)); err != nil {
		return nil, err
	}
	pod, err := n.awaitPod(ctx, visiblePodName, "runs", runs)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(n.visibleFolder())
	if err != nil || len(files) < 3 {
		return nil, &problem{"the pod did not copy directx-visible to the node", "read the log of the init container", errors.Join(err, fmt.Errorf("files: %v", files))}
	}
	code, err := n.stopGracefully(ctx, pod.container)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("files=%d", len(files)), fmt.Sprintf("exit=%d", code)}, n.removePod(ctx, visiblePodName)
}

// controlExit is the exit code of a program that the shutdown event ends, as the runtime or crictl
// reports it: STATUS_CONTROL_C_EXIT (ntstatus.h), without and with a sign.
var controlExit = []int64{0xC000013A, 0xC000013A - 1<<32}

// stopGracefully stops a container as the kubelet does, and returns its exit code. It fails unless
// the container ends by itself.
//
// Where Windows has a bind filter, the code is that of cmd.exe, through which hcsshim starts the
// program. The event ends cmd.exe, and hcsshim then sends it to the program
// (internal/jobcontainers).
func (n *node) stopGracefully(ctx context.Context, container string) (int64, error) {
	if _, err := n.crictl(ctx, "stop", "--timeout", "30", container); err != nil {
		return 0, err
	}
	found, err := n.inspect(ctx, container)
	if err != nil {
		return 0, err
	}
	code := found.Status.ExitCode
	if found.Status.State != "CONTAINER_EXITED" || (code != 0 && !slices.Contains(controlExit, code)) {
		return 0, &problem{
			"a HostProcess container did not shut down gracefully", "read its log, and that of containerd",
			fmt.Errorf("%s with %d", found.Status.State, code),
		}
	}
	return code, nil
}

// stopPlugin stops the container of the plugin, which nothing must start again: the next plugin
// would remove sockets that this one has left.
func (n *node) stopPlugin(ctx context.Context, container string) ([]string, error) {
	before, err := n.pluginSockets()
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, &problem{"the plugin has no sockets", "read its log", nil}
	}
	code, err := n.stopGracefully(ctx, container)
	if err != nil {
		return nil, err
	}
	// Windows keeps the file of a socket whose program is killed.
	if err := eventually(ctx, "the plugin has removed its sockets", func() (bool, error) {
		left, err := n.pluginSockets()
		return err == nil && len(left) == 0, errors.Join(err, fmt.Errorf("sockets: %v", left))
	}); err != nil {
		return nil, err
	}
	log, err := n.crictl(ctx, "logs", container)
	if err != nil {
		return nil, err
	}
	// When cmd.exe ends, hcsshim closes the pipe of the log, before the plugin gets the event.
	hasLine := strings.Contains(log, "shutting down")
	if code == 0 && !hasLine {
		return nil, &problem{"the log does not end with `shutting down`", "read the log", errors.New(tail(log))}
	}
	return []string{fmt.Sprintf("sockets=%d", len(before)), fmt.Sprintf("exit=%d", code), fmt.Sprintf("log=%t", hasLine)}, nil
}

// pluginSockets are the names of the sockets in the kubelet's directory, without the kubelet's.
func (n *node) pluginSockets() ([]string, error) {
	entries, err := os.ReadDir(n.devicePlugins())
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".sock") && name != "kubelet.sock" {
			names = append(names, name)
		}
	}
	return names, err
}

// devicePlugins is the kubelet's directory with the sockets of device plugins.
func (n *node) devicePlugins() string { return n.onDrive("var", "lib", "kubelet", "device-plugins") }
