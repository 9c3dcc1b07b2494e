package manifests

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	image        = "registry.example.com/directx-device-plugin"
	visibleImage = "registry.example.com/directx-visible"
	linuxImage   = "registry.example.com/directx-device-plugin-linux"
)

// version returns the version of all crates, which the released image has as its tag.
func version(t *testing.T) string {
	t.Helper()
	_, workspace, _ := strings.Cut(read(t, "Cargo.toml"), "[workspace.package]")
	found := regexp.MustCompile(`(?m)^version = "(.+)"$`).FindStringSubmatch(workspace)
	if found == nil {
		t.Fatal("Cargo.toml has no version")
	}
	return found[1]
}

func TestChartHasTheVersionOfTheProgram(t *testing.T) {
	for path, line := range map[string]string{
		"Chart.yaml":  fmt.Sprintf("\nversion: %[1]s\nappVersion: \"%[1]s\"\n", version(t)),
		"values.yaml": "  repository: " + image + "\n",
	} {
		if text := read(t, filepath.Join(chart, path)); !strings.Contains(text, line) {
			t.Errorf("%s does not contain %q", path, line)
		}
	}
}
