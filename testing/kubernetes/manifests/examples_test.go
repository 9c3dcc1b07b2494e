package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The registry that users replace, the tag of all example images, and the image of Microsoft that
// some examples use as it is.
const (
	exampleRegistry = "registry.example.com/directx-examples/"
	exampleTag      = ":ltsc2022"
	microsoftImage  = "mcr.microsoft.com/windows/server:ltsc2022"
)

// TestExamples checks every manifest in examples: the API server accepts it, and its pod runs on a
// Windows node, requests one device and has an image that can be built.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "examples/*/*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d examples: %v", len(files), err)
	}
	for _, path := range files {
		folder := filepath.Base(filepath.Dir(path))
		t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
			found, err := admit(readExample(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if len(found.pods) != 1 {
				t.Fatalf("the manifest has %d workloads, expected one", len(found.pods))
			}
			mustUseOneDevice(t, found.pods[0])
			mustHaveImage(t, found.pods[0].Containers[0].Image)
		})
	}
}

// readExample returns a manifest with the namespace that kubectl adds.
func readExample(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "\nmetadata:\n", "\nmetadata:\n  namespace: default\n", 1)
}

func mustUseOneDevice(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	mustEqual(t, "operating system", string(pod.OS.Name), "windows")
	mustEqual(t, "node selector", pod.NodeSelector["kubernetes.io/os"], "windows")
	devices := int64(0)
	for _, resource := range []corev1.ResourceName{display, compute} {
		limit := pod.Containers[0].Resources.Limits[resource]
		devices += limit.Value()
	}
	if len(pod.Containers) != 1 || devices != 1 {
		t.Errorf("%d containers request %d devices, expected one of each", len(pod.Containers), devices)
	}
}

// mustHaveImage fails unless an image is one of Microsoft, has a Dockerfile, or is in `cargo xtask image --examples`.
func mustHaveImage(t *testing.T, image string) {
	t.Helper()
	if image == microsoftImage {
		return
	}
	name, isExample := strings.CutPrefix(image, exampleRegistry)
	name, hasTag := strings.CutSuffix(name, exampleTag)
	if !isExample || !hasTag {
		t.Fatalf("image %s, expected %sNAME%s", image, exampleRegistry, exampleTag)
	}
	xtask, err := os.ReadFile(filepath.Join(repository, "xtask/src/image/programs.rs"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(xtask), `image: "`+name+`"`) {
		return
	}
	if _, err := os.Stat(filepath.Join(repository, "examples", name, "Dockerfile")); err != nil {
		t.Error(err)
	}
}
