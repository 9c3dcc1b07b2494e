package linux_node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"

	"golang.org/x/sys/unix"
)

const (
	// runtimeVariable names the folder with containerd, its shim, ctr and runc.
	runtimeVariable = "CONTAINER_RUNTIME"
	// imageVariable names the archive of the plugin's image for Linux.
	imageVariable = "PLUGIN_IMAGE"
)

func TestMain(m *testing.M) {
	folder := os.Getenv(folderVariable)
	if folder != "" && os.Getenv(enteredVariable) == "" {
		err := enter(folder, os.Getenv(groupVariable))
		_ = os.WriteFile(filepath.Join(folder, "not-entered"), []byte(err.Error()), 0o644)
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestLinuxNode runs TestOnTheNode on the node.
func TestLinuxNode(t *testing.T) {
	runtime := os.Getenv(runtimeVariable)
	switch {
	case os.Getenv(enteredVariable) != "":
		t.Skip("this process is on the node")
	case runtime == "":
		t.Skip("needs a container runtime: run `cargo xtask test linux-node`")
	case os.Getuid() != 0:
		t.Skip("needs root")
	}
	folder, err := os.MkdirTemp("", "linux-node-")
	must(t, err)
	defer os.RemoveAll(folder)
	for _, name := range []string{"shared", "layers"} {
		must(t, os.Mkdir(filepath.Join(folder, name), 0o755))
	}
	image, err := os.ReadFile(os.Getenv(imageVariable))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "shared", "plugin.tar"), image, 0o644))
	must(t, os.WriteFile(filepath.Join(folder, "shared", "demonstration.yml"), render(t), 0o644))
	folders, err := findPrograms(runtime)
	must(t, err)
	groups, err := hierarchies()
	must(t, err)
	name := filepath.Base(folder)
	err = newGroups(groups, name)
	defer func() { must(t, removeGroups(groups, name)) }()
	skipIfForbidden(t, err)
	must(t, err)
	output, err := runIsolated(folder, name, folders)
	skipIfForbidden(t, err)
	if reason, missing := os.ReadFile(filepath.Join(folder, "not-entered")); missing == nil {
		t.Skipf("this machine does not allow a node of its own: %s", reason)
	}
	os.Stdout.Write(output)
	must(t, err)
}

// render returns the objects of the chart.
func render(t *testing.T) []byte {
	t.Helper()
	chart := filepath.Join(programs.Repository, "deploy/charts/directx-device-plugin")
	helm := exec.Command("helm", "template", "demonstration", chart,
		"--no-hooks", "--set", "demonstration.enabled=true,image.repository=localhost/directx-device-plugin")
	var messages strings.Builder
	helm.Stderr = &messages
	objects, err := helm.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", helm, err, messages.String())
	}
	return objects
}

// skipIfForbidden skips the test where a container or its kernel forbids what the node needs.
func skipIfForbidden(t *testing.T, err error) {
	t.Helper()
	for _, forbidden := range []error{unix.EPERM, unix.EACCES, unix.EROFS, unix.EBUSY, unix.ENOSYS} {
		if errors.Is(err, forbidden) {
			t.Skipf("this machine does not allow a node of its own: %v", err)
		}
	}
}

// findPrograms returns the folders of the node's programs.
func findPrograms(runtime string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	paths := []string{self}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc"} {
		path, err := exec.LookPath(filepath.Join(runtime, name))
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	plugin, err := programs.Find("directx-device-plugin")
	if err != nil {
		return nil, err
	}
	paths = append(paths, plugin)
	for name, source := range map[string]string{"kubelet": "k8s.io/kubernetes/cmd/kubelet", "check": "./check"} {
		path, err := programs.Build(name, source, "")
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	for i := range paths {
		paths[i] = filepath.Dir(paths[i])
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
