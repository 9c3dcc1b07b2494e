package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"

	"k8s.io/kubernetes/pkg/capabilities"
)

// The paths of the programs that the tests run.
var program, discovery, helm string

const repository = programs.Repository

func TestMain(m *testing.M) {
	if err := findPrograms(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	// The default of the API server's --allow-privileged in every distribution. Without it, the
	// API server refuses HostProcess containers.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	os.Exit(m.Run())
}

func findPrograms() (err error) {
	if program, err = programs.Find("directx-device-plugin"); err != nil {
		return err
	}
	if discovery, err = programs.Find("directx-feature-discovery"); err != nil {
		return err
	}
	helm, err = exec.LookPath("helm")
	return err
}

// read returns the text of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
