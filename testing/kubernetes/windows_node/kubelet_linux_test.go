package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"
)

// nodeName is part of the names of static pods.
const nodeName = "windows-node"

// onWindows returns the node with the paths and endpoints that it has on Windows.
func onWindows() *node {
	return &node{
		platform: platform{os: "windows", build: 20348, drive: `C:\`}, machine: machine{folder: `C:\windows-node`}, programs: `C:\programs`,
		image: "mcr.microsoft.com/windows/nanoserver:ltsc2022", ports: ports{10250, 10255}, endpoint: runtimeEndpoint,
	}
}

// The kubelet loads files with keys that it does not know only with a warning, but here strictly.
func TestTheKubeletAcceptsItsConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.json")
	must(t, writeJSON(path, onWindows().kubeletConfiguration()))
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, path)
	must(t, err)
	loaded, err := loader.Load(context.Background())
	must(t, err)
	// This is about the system of the test.
	loaded.FailCgroupV1 = false
	must(t, validation.ValidateKubeletConfiguration(loaded, utilfeature.DefaultFeatureGate))
	// Without API server this fails with the defaults.
	_, _, err = app.BuildAuth(nodeName, nil, *loaded)
	must(t, err)
	if loaded.ResolverConfig != "" {
		t.Errorf("Windows has no %s", loaded.ResolverConfig)
	}
	for _, folder := range []string{loaded.VolumePluginDir, loaded.PodLogsDir, loaded.StaticPodPath} {
		if !strings.Contains(folder, "windows-node") {
			t.Errorf("the kubelet also writes to %s", folder)
		}
	}
	if loaded.Authentication.Anonymous.Enabled || loaded.Address != "127.0.0.1" {
		t.Error("others may call the kubelet")
	}
}

// The kubelet's own source of static pods decodes, defaults and validates the manifests.
func TestTheKubeletAcceptsTheManifests(t *testing.T) {
	// As the kubelet does.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	n, live := onWindows(), onWindows()
	live.live = true
	folder := t.TempDir()
	for name, manifest := range map[string]map[string]any{
		"device": n.pod("device", 1), "second": n.pod("second", 2), "live": live.pod("live", 1),
		pluginPodName:  n.pluginPod(pluginPodName, "registry.example.com/directx-device-plugin:0.1.0"),
		visiblePodName: n.visiblePod("registry.example.com/directx-visible:0.1.0"),
	} {
		must(t, writeJSON(filepath.Join(folder, name+".json"), manifest))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	source := kubeletconfig.NewPodConfig(record.NewFakeRecorder(10), kubeletutil.NewPodStartupLatencyTracker())
	kubeletconfig.NewSourceFile(klog.FromContext(ctx), folder, nodeName, time.Minute, source.Channel(ctx, kubetypes.FileSource))
	found := map[string]*v1.Pod{}
	for len(found) < 5 {
		select {
		case update := <-source.Updates():
			for _, pod := range update.Pods {
				found[strings.TrimSuffix(pod.Name, "-"+nodeName)] = pod
			}
		case <-ctx.Done():
			t.Fatalf("the kubelet accepts only %v", slices.Collect(maps.Keys(found)))
		}
	}
	if limit := found["second"].Spec.Containers[0].Resources.Limits[display]; limit.Value() != 2 {
		t.Errorf("the pod requests %v", limit)
	}
	options := found[pluginPodName].Spec.SecurityContext.WindowsOptions
	if options == nil || options.HostProcess == nil || !*options.HostProcess || !found[pluginPodName].Spec.HostNetwork {
		t.Errorf("the plugin is no HostProcess container: %+v", options)
	}
	for _, argument := range found[pluginPodName].Spec.Containers[0].Args {
		if argument == "--config" || argument == n.configurationFile() {
			t.Error("the plugin does not look for its configuration at the default path")
		}
	}
}
