// Package programs finds the programs that the tests of this module run.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Repository is the root of the repository, as seen from the folder of a package of this module.
// Tests run there.
const Repository = "../../.."

// Find returns the path of one of the workspace's programs or examples. A variable such as
// DIRECTX_DEVICE_PLUGIN or EXAMPLES_MINIMAL names the file; without it, the debug build is used.
func Find(name string) (string, error) {
	if path := os.Getenv(variable(name)); path != "" {
		return exec.LookPath(path)
	}
	path, err := exec.LookPath(filepath.Join(target(), "debug", name))
	if err != nil {
		return "", fmt.Errorf("%s is not built: %w\nhint: run `cargo build --workspace`, or set %s", name, err, variable(name))
	}
	return filepath.Abs(path)
}

// Build builds a Go program of this module and returns its path. Go does nothing if it is up to
// date.
func Build(name, folder, linkerFlags string) (string, error) {
	path, err := filepath.Abs(filepath.Join(target(), "go", name))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w "+linkerFlags, "-o", path, folder)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("%v: %w", build, err)
	}
	return path, nil
}

// target is cargo's target folder.
func target() string {
	switch folder := os.Getenv("CARGO_TARGET_DIR"); {
	case folder == "":
		return filepath.Join(Repository, "target")
	case filepath.IsAbs(folder):
		return folder
	default:
		return filepath.Join(Repository, folder)
	}
}

func variable(name string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", "/", "_").Replace(name))
}
