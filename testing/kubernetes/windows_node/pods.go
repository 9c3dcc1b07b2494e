package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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

// checkDefaultConfiguration runs a pod, which gets what is predicted only if the plugin has read its
// configuration.
func (n *node) checkDefaultConfiguration(ctx context.Context) ([]string, error) {
	if err := n.removePod(ctx, n.podName); err != nil {
		return nil, err
	}
	if _, err := n.runDevicePod(ctx, "served-by-image"); err != nil {
		return nil, err
	}
	return n.compare(ctx)
}

// stopPluginImage stops the container of the plugin, which the kubelet starts again.
func (n *node) stopPluginImage(ctx context.Context) ([]string, error) {
	pod, err := n.awaitPod(ctx, pluginPodName, "runs", runs)
	if err != nil {
		return nil, err
	}
	return nil, n.stopGracefully(ctx, pod.container)
}

// importImage imports the image of an archive and returns its name.
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
