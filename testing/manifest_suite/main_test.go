package manifests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/kubernetes/pkg/capabilities"
)

// The programs under test, by the environment variables that name them.
var (
	program   string
	discovery string
	helm      string
)

// repository is the root of the repository.
const repository = "../.."

func TestMain(m *testing.M) {
	for variable, path := range map[string]*string{
		"DIRECTX_DEVICE_PLUGIN": &program, "DIRECTX_FEATURE_DISCOVERY": &discovery, "HELM": &helm,
	} {
		found, err := exec.LookPath(os.Getenv(variable))
		if err != nil {
			fmt.Fprintf(os.Stderr, "error: %s is not the path of a program: %v\n", variable, err)
			os.Exit(1)
		}
		*path = found
	}
	// The default of the API server's --allow-privileged in every distribution. Without it, the
	// API server refuses HostProcess containers.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	os.Exit(m.Run())
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
