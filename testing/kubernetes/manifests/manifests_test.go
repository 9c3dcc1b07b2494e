package manifests

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Recorded hosts.
const (
	twoT4      = "aws-t4-two.yaml"             // two NVIDIA T4
	twoVendors = "made-up-two-vendors.yaml"    // one NVIDIA A10, one AMD V520
	npu        = "made-up-npu-beside-gpu.yaml" // one Intel NPU and one GPU
	none       = "generated/no-adapters.yaml"  // no device
	own        = ""                            // the host in the container's own inventory
)

const (
	display = "directx.microsoft.com/display"
	compute = "directx.microsoft.com/compute"
)

// manifests says what each DaemonSet in deploy advertises.
var manifests = []struct {
	file, daemonSet, inventory string
	resources                  map[string]int64
}{
	{"directx-device-plugin.yml", "directx-device-plugin", twoT4, map[string]int64{display: 2, compute: 0}},
	{"directx-device-plugin.yml", "directx-device-plugin", npu, map[string]int64{display: 1, compute: 1}},
	{"default-daemonsets.yml", "device-plugin-wddm", twoT4, map[string]int64{display: 2}},
	{"default-daemonsets.yml", "device-plugin-mcdm", npu, map[string]int64{compute: 1}},
	{"default-daemonsets.yml", "device-plugin-wddm", none, map[string]int64{display: 0}},
	{"multitenancy-inline.yml", "device-plugin-wddm", twoT4, map[string]int64{display: 8}},
	{"multitenancy-inline.yml", "device-plugin-mcdm", npu, map[string]int64{compute: 4}},
	{"multitenancy-configmap.yml", "device-plugin-wddm", twoT4, map[string]int64{display: 8}},
	{"multitenancy-configmap.yml", "device-plugin-mcdm", npu, map[string]int64{compute: 4}},
	{"aks.yml", "device-plugin-legacy", twoT4, map[string]int64{"microsoft.com/directx": 2}},
	{"aks.yml", "device-plugin-legacy", twoVendors, map[string]int64{"microsoft.com/directx": 1}},
	{"ack.yml", "device-plugin-legacy", twoT4, map[string]int64{"windows.alibabacloud.com/directx": 512}},
	{"linux.yml", "directx-device-plugin-linux", own, map[string]int64{display: 2, compute: 0}},
	{"nvidia-gpu.yml", "directx-device-plugin", twoT4, map[string]int64{"nvidia.com/gpu": 2, display: 0, compute: 0}},
	{"nvidia-gpu.yml", "directx-device-plugin", twoVendors, map[string]int64{"nvidia.com/gpu": 1, display: 1, compute: 0}},
	{"nvidia-gpu.yml", "directx-device-plugin", npu, map[string]int64{"nvidia.com/gpu": 1, display: 0, compute: 1}},
}

// TestManifests checks every file in deploy.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "deploy/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("deploy contains no manifests: %v", err)
	}
	for _, path := range files {
		file := filepath.Base(path)
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			found, err := admit(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, daemonSet := range found.daemonSets {
				mustBeSafe(t, daemonSet)
				if !isPlugin(daemonSet) {
					continue
				}
				c := newContainer(t, daemonSet, found.configMaps)
				c.mustAcceptCommands()
				c.mustReadConfiguration()
				cases := 0
				for _, manifest := range manifests {
					if manifest.file == file && manifest.daemonSet == daemonSet.Name {
						c.mustAdvertise(manifest.inventory, manifest.resources)
						cases++
					}
				}
				if cases == 0 {
					t.Errorf("no test says what %s advertises", daemonSet.Name)
				}
			}
		})
	}
	for _, manifest := range manifests {
		if _, err := os.Stat(filepath.Join(repository, "deploy", manifest.file)); err != nil {
			t.Error(err)
		}
	}
}

// TestKustomization renders examples/kustomize as `kubectl apply --kustomize` does, as it is and
// with everything that its files have as comments.
func TestKustomization(t *testing.T) {
	mustHaveImagesOf(t, 1, func(text string) string { return text })
	commented := regexp.MustCompile(`(?m)^# (- |  new)`)
	mustHaveImagesOf(t, 4, func(text string) string { return commented.ReplaceAllString(text, "$1") })
}

func mustHaveImagesOf(t *testing.T, daemonSets int, changed func(string) string) {
	t.Helper()
	files := filesys.MakeFsInMemory()
	names, err := filepath.Glob(filepath.Join(repository, "deploy/*.y*ml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(names, filepath.Join(repository, "examples/kustomize/kustomization.yml")) {
		name, err := filepath.Rel(repository, path)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, name)
		if strings.HasPrefix(filepath.Base(name), "kustomization.") {
			text = changed(text)
		}
		if err := files.WriteFile("/"+filepath.ToSlash(name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/examples/kustomize")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	found, err := admit(string(manifest))
	if err != nil || len(found.daemonSets) != daemonSets {
		t.Fatalf("%d DaemonSets: %v", len(found.daemonSets), err)
	}
	for _, daemonSet := range found.daemonSets {
		mustBeSafe(t, daemonSet)
		pod := daemonSet.Spec.Template.Spec
		for _, container := range append(pod.InitContainers, pod.Containers...) {
			name, _ := strings.CutPrefix(container.Image, "registry.your-company.example/directx-")
			if name == container.Image || !strings.HasSuffix(name, ":0.1.0") {
				t.Errorf("%s has the image %s", daemonSet.Name, container.Image)
			}
		}
	}
}

// TestInvalidConfigurationIsRefused shows that the program judges the files and variables of a
// container.
func TestInvalidConfigurationIsRefused(t *testing.T) {
	valid := read(t, "deploy/multitenancy-configmap.yml")
	for _, change := range []struct{ from, to, message string }{
		{"    multitenancy: 4\n  mcdm", "    multitenacy: 4\n  mcdm", "did you mean `multitenancy`?"},
		{"wddm.yaml: |", "wddm.yml: |", "WDDM_DEVICE_PLUGIN_CONFIG_FILE"},
	} {
		found, err := admit(strings.Replace(valid, change.from, change.to, 1))
		if err != nil {
			t.Fatal(err)
		}
		c := newContainer(t, found.daemonSets[1], found.configMaps)
		_, err = c.run(append([]string{"simulate", "--inventory", inventoryPath(twoT4)}, c.configuration()...)...)
		if err == nil || !strings.Contains(err.Error(), change.message) {
			t.Errorf("got %v, expected an error with %q", err, change.message)
		}
	}
}

// TestUnusedConfigurationIsFound shows that a variable or a file without effect is noticed.
func TestUnusedConfigurationIsFound(t *testing.T) {
	for _, change := range []struct{ file, from, to, unused string }{
		{"ack.yml", "DIRECTX_GPU_MATCH_NAME", "DIRECTX_GPU_MATCH_NAMES", "DIRECTX_GPU_MATCH_NAMES"},
		{"nvidia-gpu.yml", "serve, --config, ", "serve] # ", "etc/directx-device-plugins/config.yaml"},
	} {
		found, err := admit(strings.Replace(read(t, "deploy/"+change.file), change.from, change.to, 1))
		if err != nil {
			t.Fatal(err)
		}
		unused := newContainer(t, found.daemonSets[0], found.configMaps).unusedConfiguration()
		if len(unused) != 1 || !strings.HasSuffix(unused[0], change.unused) {
			t.Errorf("%s: the unused configuration is %q, expected %q", change.file, unused, change.unused)
		}
	}
}
