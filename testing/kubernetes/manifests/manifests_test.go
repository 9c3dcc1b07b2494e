package manifests

import (
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
	eightH100  = "made-up-h100-mcdm.yaml"      // eight NVIDIA H100 in MCDM mode
	none       = "generated/no-adapters.yaml"  // no device
	own        = ""                            // the host in the container's own inventory
)

const (
	display = "directx.microsoft.com/display"
	compute = "directx.microsoft.com/compute"
)

// TestKustomization renders examples/kustomize as `kubectl apply --kustomize` does, as it is and
// with everything that its files have as comments.
func TestKustomization(t *testing.T) {
	mustHaveImagesOf(t, 1, func(text string) string { return text })
	commented := regexp.MustCompile(`(?m)^# (- )`)
	mustHaveImagesOf(t, 2, func(text string) string { return commented.ReplaceAllString(text, "$1") })
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
