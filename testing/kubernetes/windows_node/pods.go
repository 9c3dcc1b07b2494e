package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const secondPodName, pluginPodName = "over-capacity", "plugin"

// firstPod runs a pod with a device.
func (n *node) firstPod(ctx context.Context) ([]string, error) { return n.runDevicePod(ctx, "device") }

func (n *node) runDevicePod(ctx context.Context, name string) ([]string, error) {
	if err := n.addDevicePod(ctx, name, 1); err != nil {
		return nil, err
	}
	return n.mustHaveDevice(ctx, name, runs)
}

// mustHaveDevice waits until the pod runs as wanted, and fails unless it has its device.
func (n *node) mustHaveDevice(ctx context.Context, name string, wanted func(podStatus) bool) ([]string, error) {
	pod, err := n.awaitPod(ctx, name, "runs", wanted)
	if err != nil {
		return nil, err
	}
	n.podName, n.devicePod = name, pod
	found := output{}
	if err := eventually(ctx, "the container has checked its device", func() (bool, error) {
		text, err := n.crictl(ctx, "logs", pod.container)
		found = parseOutput(text)
		if found.checks["device"] == "no" {
			return false, &problem{"the pod started without its device", "report this with the logs", err}
		}
		return found.checks["done"] == "yes", err
	}); err != nil {
		return nil, err
	}
	if err := found.checks.mustHaveDevice(n.live); err != nil {
		return nil, err
	}
	n.found = found.checks
	_, err = n.predictionFor(found.variables)
	return nil, err
}

// checkLauncher judges how directx-visible has ended in the pod.
func (n *node) checkLauncher(context.Context) ([]string, error) {
	return []string{"check=" + n.found["launcher"], "child=" + n.found["child"]}, n.found.mustRunLauncher(n.live)
}

// checkProbe judges how gpu-probe has ended in the pod.
func (n *node) checkProbe(context.Context) ([]string, error) {
	return []string{"exit=" + n.found["probe"]}, n.found.mustInclude(checks{"probe": "0"})
}

// compare compares the container with the prediction of `simulate`.
func (n *node) compare(ctx context.Context) ([]string, error) {
	text, err := n.crictl(ctx, "logs", n.devicePod.container)
	if err != nil {
		return nil, err
	}
	wanted, err := n.predictionFor(parseOutput(text).variables)
	if err != nil {
		return nil, err
	}
	got, err := n.inspect(ctx, n.devicePod.container)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("mounts=%d", len(wanted.Mounts))}, wanted.mustEqual(got)
}

// refuse requests as many devices as the node has, of which one is in use.
func (n *node) refuse(ctx context.Context) ([]string, error) {
	if err := n.addDevicePod(ctx, secondPodName, len(n.wanted)); err != nil {
		return nil, err
	}
	pod, err := n.awaitPod(ctx, secondPodName, "is refused", func(pod podStatus) bool { return pod.phase == "Failed" || runs(pod) })
	if err != nil {
		return nil, err
	}
	if runs(pod) || !strings.Contains(pod.message, display) {
		return nil, &problem{"the kubelet did not refuse a pod for its devices", "read kubelet.log", fmt.Errorf("%+v", pod)}
	}
	return []string{"reason=" + pod.reason}, n.removePod(ctx, secondPodName)
}

// restartPlugin restarts the plugin. The pod must keep its container.
func (n *node) restartPlugin(ctx context.Context) ([]string, error) {
	n.plugin.kill()
	if _, err := n.register(ctx); err != nil {
		return nil, err
	}
	return nil, n.mustBeUndisturbed(ctx)
}

// restartKubelet restarts the kubelet, which reads its checkpoint of allocations. The plugin
// registers again, and the pod must keep its container.
func (n *node) restartKubelet(ctx context.Context) ([]string, error) {
	n.kubelet.kill()
	if err := n.runKubelet(ctx); err != nil {
		return nil, err
	}
	if err := n.awaitReady(ctx); err != nil {
		return nil, err
	}
	return nil, n.mustBeUndisturbed(ctx)
}

func (n *node) mustBeUndisturbed(ctx context.Context) error {
	pod, err := n.awaitPod(ctx, n.podName, "runs", runs)
	if err == nil && pod.container != n.devicePod.container {
		err = &problem{"the container was restarted", "read kubelet.log", nil}
	}
	return err
}

// restartContainer stops the container. The kubelet starts it again with the same device.
func (n *node) restartContainer(ctx context.Context) ([]string, error) {
	before := n.devicePod.container
	if _, err := n.crictl(ctx, "stop", "--timeout", "1", before); err != nil {
		return nil, err
	}
	if _, err := n.mustHaveDevice(ctx, n.podName, func(pod podStatus) bool { return runs(pod) && pod.container != before }); err != nil {
		return nil, err
	}
	return n.compare(ctx)
}

// runPluginImage runs the plugin from its image, as the DaemonSet does.
func (n *node) runPluginImage(ctx context.Context) ([]string, error) {
	n.plugin.kill()
	n.plugin = nil
	image, err := n.importImage(ctx, n.pluginImage)
	if err != nil {
		return nil, err
	}
	if _, err := n.predict(ctx, withoutLauncher); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(n.configMap(), 0o755); err != nil {
		return nil, err
	}
	if err := n.makeMountPoint(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{"wddm.yaml", "mcdm.yaml"} {
		if err := os.WriteFile(filepath.Join(n.configMap(), name), []byte(withoutLauncher), 0o644); err != nil {
			return nil, err
		}
	}
	if err := n.addPod(pluginPodName, n.pluginPod(pluginPodName, image)); err != nil {
		return nil, err
	}
	if _, err := n.awaitPod(ctx, pluginPodName, "runs", runs); err != nil {
		return nil, err
	}
	return nil, n.awaitReady(ctx)
}

// checkProbes waits until the kubelet's probes have called the plugin in its container.
func (n *node) checkProbes(ctx context.Context) ([]string, error) {
	_, err := n.awaitPod(ctx, pluginPodName, "is ready", func(pod podStatus) bool { return pod.ready })
	return nil, err
}

// makeMountPoint makes the folder of the host above the default path of the configuration. hcsshim
// would make it with the rights of the drive, which on images of Azure let every user rename it.
func (n *node) makeMountPoint(ctx context.Context) error {
	folder := n.onDrive("etc")
	err := os.Mkdir(folder, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = n.run(ctx, "icacls", folder, "/inheritance:r", "/grant:r", "*S-1-5-18:(OI)(CI)F", "*S-1-5-32-544:(OI)(CI)F")
	return err
}

// checkDefaultConfiguration runs a pod, which gets what is predicted only if the plugin has read its
// configuration.
func (n *node) checkDefaultConfiguration(ctx context.Context) ([]string, error) {
	plugin, err := n.awaitPod(ctx, pluginPodName, "runs", runs)
	if err != nil {
		return nil, err
	}
	fixes, err := n.followHints(ctx, plugin.container)
	if err != nil {
		return nil, err
	}
	if err := n.removePod(ctx, n.podName); err != nil {
		return nil, err
	}
	if _, err := n.runDevicePod(ctx, "served-by-image"); err != nil {
		return nil, err
	}
	measured, err := n.compare(ctx)
	return append(measured, fmt.Sprintf("hints=%d", fixes)), err
}

// followHints runs the commands that the plugin prints in its container, until it no longer ignores
// its configuration, and returns how many there were: on most hosts, users may change a folder
// below the drive, and a file at the default path must not be theirs.
func (n *node) followHints(ctx context.Context, container string) (int, error) {
	done := map[string]bool{}
	err := eventually(ctx, "the plugin has applied its configuration", func() (bool, error) {
		log, err := n.crictl(ctx, "logs", container)
		if err != nil {
			return false, err
		}
		hint, ignored := lastHint(log)
		if !ignored {
			return true, nil
		}
		if len(hint) == 0 {
			return false, &problem{"the plugin ignores its configuration, and prints no command", "read its log", errors.New(tail(log))}
		}
		for _, command := range hint {
			if key := strings.Join(command, " "); !done[key] {
				done[key] = true
				if _, err := n.crictl(ctx, append([]string{"exec", "--sync", container}, command...)...); err != nil {
					return false, err
				}
			}
		}
		return false, errors.New(tail(log))
	})
	return len(done), err
}

// lastHint returns the commands of the last line about an ignored configuration, unless a later
// line says that one was applied.
func lastHint(log string) (commands [][]string, ignored bool) {
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, "configuration applied"):
			commands, ignored = nil, false
		case strings.Contains(line, "the configuration file") && strings.Contains(line, "is ignored"):
			commands, ignored = nil, true
			for _, quoted := range hintCommand.FindAllStringSubmatch(line, -1) {
				commands = append(commands, words(quoted[1]))
			}
		}
	}
	return commands, ignored
}

// hintCommand is a command of icacls in a line of the log.
var hintCommand = regexp.MustCompile("`(icacls [^`]+)`")

// words splits a command for PowerShell at spaces outside of double quotes.
func words(command string) []string {
	found := wordPattern.FindAllString(command, -1)
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], `"`, "")
	}
	return found
}

var wordPattern = regexp.MustCompile(`(?:"[^"]*"|[^" ])+`)

// stopPluginImage stops the container of the plugin.
func (n *node) stopPluginImage(ctx context.Context) ([]string, error) {
	pod, err := n.awaitPod(ctx, pluginPodName, "runs", runs)
	if err != nil {
		return nil, err
	}
	return n.stopPlugin(ctx, pod.container)
}

// importImage imports the images of an archive and returns the name of the first one. containerd sorts the names, so
// directx-device-plugin comes before the plugin's other images.
func (n *node) importImage(ctx context.Context, archive string) (string, error) {
	known, err := n.ctr(ctx, "images", "list", "--quiet")
	if err != nil {
		return "", err
	}
	if _, err := n.ctr(ctx, "images", "import", archive); err != nil {
		return "", &problem{"an image cannot be imported", "build it with `cargo xtask image`", err}
	}
	names, err := n.ctr(ctx, "images", "list", "--quiet")
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(names) {
		if !slices.Contains(strings.Fields(known), name) && !strings.HasPrefix(name, "sha256:") {
			return name, nil
		}
	}
	return "", &problem{"the archive has no image with a name", "build it with `cargo xtask image`", nil}
}
