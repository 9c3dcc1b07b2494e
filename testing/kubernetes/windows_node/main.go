// Program windows_node tests the device plugin on Windows without a cluster. It makes the host a
// Kubernetes node with containerd and a kubelet without API server, runs pods with devices, and
// removes everything that it made. A GPU is not needed. docs/maintainers/windows-node.md describes its use.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cleanLimit bounds the removal of everything. Windows needs minutes to delete images.
const cleanLimit = 10 * time.Minute

func main() {
	executable, err := os.Executable()
	if err != nil {
		fail(1, err)
	}
	n := &node{archives: archives, ports: ports{10250, 10255}, natInterface: "vEthernet (nat)", endpoint: runtimeEndpoint}
	flag.StringVar(&n.programs, "programs", filepath.Dir(executable), "the folder with directx-device-plugin.exe and directx-visible.exe")
	flag.StringVar(&n.pluginImage, "plugin-image", "", "the archive of the plugin's image; without it, the image is not tested")
	flag.StringVar(&n.visibleImage, "visible-image", "", "the archive of the image of directx-visible; without it, the image is not tested")
	flag.StringVar(&n.image, "image", "", "the image of the pods, which this version of Windows can run with process isolation")
	flag.BoolVar(&n.live, "live", false, "use the GPUs of this host")
	report := flag.String("report", "windows-node.md", "the report, without private data")
	logs := flag.String("logs", "windows-node-logs", "the folder of all logs, which may contain private data")
	flag.Parse()
	if flag.NArg() > 0 {
		fail(2, fmt.Errorf("unexpected argument %q", flag.Arg(0)))
	}
	if n.platform, err = thisPlatform(); err != nil {
		fail(1, err)
	}
	n.folder = n.onDrive("windows-node")
	system := n.onDrive("Windows", "System32")
	// Not those of another folder in PATH, such as Git's tar, which cannot read zip files.
	n.paths = map[string]string{}
	for _, name := range []string{"icacls", "sc", "tar", "taskkill", "tasklist"} {
		n.paths[name] = filepath.Join(system, name+".exe")
	}
	for _, path := range []*string{logs, &n.programs, &n.pluginImage, &n.visibleImage} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				fail(1, err)
			}
		}
	}
	findings, err := n.test(*logs, *report, n.steps())
	if err != nil {
		fail(1, err)
	}
	if count(findings, failed) > 0 {
		os.Exit(1)
	}
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(code)
}

// test runs steps, removes everything and writes the report.
func (n *node) test(logs, report string, steps []step) ([]finding, error) {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(logs, "commands.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	n.logs, n.log = logs, file
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	print := func(f finding) { fmt.Fprintln(io.MultiWriter(os.Stdout, file), f.text()) }
	findings := runSteps(ctx, steps, print)
	version := n.pluginVersion()
	// Ctrl+C has no effect on this.
	cleanup := step{name: "cleanup", proves: "nothing is left", limit: cleanLimit, run: func(ctx context.Context) ([]string, error) {
		return nil, n.clean(ctx)
	}}
	findings = append(findings, runSteps(context.Background(), []step{cleanup}, print)...)
	versions := [][2]string{
		{"Windows", "build " + strconv.Itoa(n.build)}, {"directx-device-plugin", version}, {"kubelet", kubeletVersion},
		{"containerd", containerdVersion}, {"crictl", crictlVersion}, {"CNI plugin nat", cniVersion},
	}
	text := markdown(versions, findings)
	fmt.Printf("\n%s\n", outcomes(findings))
	return findings, os.WriteFile(report, []byte(text), 0o644)
}

func (n *node) pluginVersion() string {
	if n.paths["plugin"] == "" {
		return "unknown"
	}
	text, err := n.run(context.Background(), "plugin", "--version")
	fields := strings.Fields(text)
	if err != nil || len(fields) == 0 {
		return "unknown"
	}
	return fields[len(fields)-1]
}

// steps are all steps in their order. Containers without the kubelet come first, because the
// kubelet removes those that it does not know.
func (n *node) steps() []step {
	noGPU, live, noImage, noVisibleImage, noServices := "", "without --live", "", "", ""
	if n.live {
		noGPU, live = "only on a host without GPU", ""
	}
	withPrograms := live
	if n.build < server2025 {
		withPrograms = "pods have every file of the driver before Windows Server 2025"
	}
	if n.pluginImage == "" {
		noImage = "no --plugin-image"
	}
	if n.visibleImage == "" {
		noVisibleImage = "no --visible-image"
	}
	if n.os != "windows" {
		noServices = "only Windows has services"
	}
	const short, long = 5 * time.Minute, 30 * time.Minute
	needs := func(steps ...string) []string { return steps }
	return []step{
		{name: "host", proves: "this host may become a node", limit: time.Minute, run: n.checkHost},
		{name: "tools", proves: "containerd, kubelet, crictl and the CNI plugin are as published", limit: long, needs: needs("host"), run: n.tools},
		{name: "network", proves: "Windows has a network for containers", limit: short, needs: needs("host"), run: n.network},
		{name: "containerd", proves: "containerd is ready", limit: short, needs: needs("tools", "network"), run: n.containerd},
		{name: "images", proves: "containerd pulls and unpacks images for this Windows", limit: long, needs: needs("containerd"), run: n.pullImages},
		{name: "container", proves: "a container without device has no drivers of the host", limit: short, needs: needs("images"), run: n.withoutDevice},
		{name: "class", proves: "a container with the class of display adapters has the drivers of the host", limit: short, needs: needs("container"), run: n.withClass},
		{
			name: "classes", proves: "Windows accepts the classes that could contain compute-only devices", limit: 3 * short, needs: needs("container"),
			informative: true, unless: live, run: n.tryClasses,
		},
		{name: "file", proves: "a container has a read-only file of the host in System32", limit: short, needs: needs("container"), run: n.withFile},
		{
			name: "file32", proves: "a container without SysWOW64 starts with a file in it", limit: short, needs: needs("file"),
			informative: true, unless: noGPU, run: n.withFile32,
		},
		{
			name: "location", proves: "Windows refuses a location path without device", limit: short, needs: needs("container"),
			informative: true, unless: noGPU, run: n.withUnknownLocation,
		},
		{name: "prediction", proves: "the plugin finds devices, and simulate predicts their containers", limit: short, needs: needs("host"), run: n.describeHost},
		{
			name: "program", proves: "a container runs a program that the plugin mounts with runtimeMounts: extra", limit: short, needs: needs("container", "prediction"),
			informative: true, unless: withPrograms, run: n.runProgram,
		},
		{name: "kubelet", proves: "a kubelet runs without API server", limit: short, needs: needs("images"), run: n.startKubelet},
		{name: "registration", proves: "the plugin registers over the socket, and the kubelet has its devices", limit: short, needs: needs("kubelet", "prediction"), run: n.register},
		{name: "pod", proves: "a pod has its device, files and variables", limit: short, needs: needs("registration"), run: n.firstPod},
		{name: "launcher", proves: "directx-visible runs in the container", limit: short, needs: needs("pod"), run: n.checkLauncher},
		{name: "probe", proves: "gpu-probe uses the GPU in the container", limit: short, needs: needs("pod"), unless: live, run: n.checkProbe},
		{name: "equality", proves: "containerd received what simulate predicts", limit: short, needs: needs("pod"), run: n.compare},
		{name: "capacity", proves: "the kubelet refuses a pod when no device is free", limit: short, needs: needs("pod"), run: n.refuse},
		{name: "plugin-restart", proves: "the pod keeps its container when the plugin restarts", limit: short, needs: needs("pod"), run: n.restartPlugin},
		{name: "kubelet-restart", proves: "the pod keeps its container when the kubelet restarts", limit: short, needs: needs("pod"), run: n.restartKubelet},
		{name: "container-restart", proves: "a restarted container has the same device", limit: short, needs: needs("pod"), run: n.restartContainer},
		{name: "service-install", proves: "the plugin installs itself as a service", limit: short, needs: needs("pod"), unless: noServices, run: n.installService},
		{name: "service-start", proves: "the service starts, and the kubelet has its devices", limit: short, needs: needs("service-install"), unless: noServices, run: n.startService},
		{name: "service-failure", proves: "Windows restarts the service after a crash", limit: short, needs: needs("service-start"), unless: noServices, run: n.failService},
		{name: "service-stop", proves: "the service stops gracefully", limit: short, needs: needs("service-start"), unless: noServices, run: n.stopService},
		{name: "service-uninstall", proves: "the plugin removes its service", limit: short, needs: needs("service-install"), unless: noServices, run: n.uninstallService},
		{name: "image", proves: "the plugin's image runs as HostProcess container and registers", limit: short, needs: needs("pod"), unless: noImage, run: n.runPluginImage},
		{name: "image-probes", proves: "the kubelet's exec probes call the plugin in its container", limit: short, needs: needs("image"), unless: noImage, run: n.checkProbes},
		{
			name: "image-config", proves: "a volume at the default path configures the plugin, and a pod has its device", limit: short, needs: needs("image"),
			unless: noImage, run: n.checkDefaultConfiguration,
		},
		{name: "image-stop", proves: "the HostProcess container shuts down gracefully", limit: short, needs: needs("image"), unless: noImage, run: n.stopPluginImage},
		{
			name: "visible-image", proves: "a pod copies directx-visible to the node, waits, and shuts down gracefully", limit: short, needs: needs("kubelet"),
			unless: noVisibleImage, run: n.installVisible,
		},
		{name: "description", proves: "doctor and record describe this host", limit: short, needs: needs("host"), informative: true, run: n.describeNode},
	}
}
