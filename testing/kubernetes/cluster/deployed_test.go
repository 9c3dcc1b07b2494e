package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// advertised is what a manifest advertises on a host with two equal GPUs and a neural processor.
type advertised struct {
	capacity map[v1.ResourceName]int64
	labels   map[string]string
}

// pluginManifests are the manifests of the plugin for Windows nodes.
var pluginManifests = map[string]advertised{
	"directx-device-plugin.yml":  {map[v1.ResourceName]int64{display: 2, compute: 1}, exclusive("3")},
	"default-daemonsets.yml":     {map[v1.ResourceName]int64{display: 2, compute: 1}, exclusive("3")},
	"multitenancy-inline.yml":    {map[v1.ResourceName]int64{display: 8, compute: 4}, shared("3", "4")},
	"multitenancy-configmap.yml": {map[v1.ResourceName]int64{display: 8, compute: 4}, shared("3", "4")},
	"ack.yml":                    {map[v1.ResourceName]int64{"windows.alibabacloud.com/directx": 512}, shared("2", "256")},
	"aks.yml":                    {map[v1.ResourceName]int64{"microsoft.com/directx": 2}, exclusive("2")},
}

func exclusive(count string) map[string]string {
	return map[string]string{"count": count, "replicas": "1", "sharing-strategy": "none"}
}

func shared(count, replicas string) map[string]string {
	return map[string]string{"count": count, "replicas": replicas, "sharing-strategy": "time-slicing"}
}

// Beside each manifest of the plugin, the feature discovery with the options of its own manifest
// writes what `simulate` predicts for the plugin's options and variables. A new node loses its
// startup taint.
func TestFeatureDiscoveryWorksWithEachManifest(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../deploy/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(mountPoint+`\directx-device-plugin.exe`)) {
			continue
		}
		found++
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			expected, isKnown := pluginManifests[filepath.Base(path)]
			if !isKnown {
				t.Fatalf("pluginManifests has no row for %s", path)
			}
			testManifest(t, path, expected)
		})
	}
	if found != len(pluginManifests) {
		t.Errorf("deploy has %d manifests of the plugin, expected %d", found, len(pluginManifests))
	}
}

func testManifest(t *testing.T, path string, expected advertised) {
	n := newNode(t, "with-"+strings.TrimSuffix(filepath.Base(path), ".yml"), "")
	n.host.returnGPU(npu(t))
	n.startRuntime()
	n.startKubelet()
	eventually(t, "the node object", n.name, func() string { return n.object().Name })
	n.patch(`{"spec": {"taints": [{"key": "` + startupTaint + `", "effect": "NoSchedule"}]}}`)
	arguments := n.deployed(accountManifest)[0].arguments
	for index, word := range arguments {
		// The nodes of this machine share its ports.
		arguments[index] = strings.Replace(word, ":9401", ":0", 1)
	}
	p := n.startDiscovery(n.account(accountName), apiServerPort(), n.name, append(arguments, "--startup-taint", startupTaint)...)
	var all deployed
	for _, d := range n.deployed(path) {
		n.startDaemon(filepath.Base(path)+".log", d.environment, d.arguments[1:])
		all.environment = append(all.environment, d.environment...)
		for _, argument := range d.arguments[1:] {
			// One command for both daemons: their other options have equal values, or files with equal lines.
			name, _, _ := strings.Cut(argument, "=")
			isGiven := slices.ContainsFunc(all.arguments, func(word string) bool { return strings.HasPrefix(word, name+"=") })
			if name == "--driver-model" || !isGiven {
				all.arguments = append(all.arguments, argument)
			}
		}
	}

	eventually(t, "taints", "", n.taints)
	predicted := n.simulateWith(all.environment, append(all.arguments, "--inventory", n.host.path))
	eventually(t, "labels", labelLines(predicted.Labels), n.labels)
	n.mustHaveConditions(predicted.conditions())
	object := n.object()
	for _, resource := range predicted.Resources {
		name := v1.ResourceName(resource.Name)
		if found := object.Status.Capacity.Name(name, "").Value(); found != resource.Capacity || found != expected.capacity[name] {
			t.Errorf("the capacity of %s is %d, simulate predicts %d, expected %d", name, found, resource.Capacity, expected.capacity[name])
		}
	}
	if len(predicted.Resources) != len(expected.capacity) {
		t.Errorf("simulate predicts the resources %v, expected %v", predicted.Resources, expected.capacity)
	}
	for name, value := range expected.labels {
		if found := object.Labels[labelPrefix+name]; found != value {
			t.Errorf("the label %s is %q, expected %q", name, found, value)
		}
	}
	if text := p.page(t, "/readyz"); text != "ready\n" {
		t.Errorf("a probe of the feature discovery receives %q", text)
	}
	t.Logf("the requests of the new node: %q", n.requests(accountName))
}
