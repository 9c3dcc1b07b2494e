package kubelet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// marker is a folder that marks the kubelet's directory as created by these tests. It is a
// folder because kubelets delete files there.
const marker = "created-by-directx-device-plugin-tests"

// runLimit bounds the wait for another run of these tests.
const runLimit = 10 * time.Minute

// directory is the kubelet's directory for device plugins during the tests.
var directory = testDirectory{path: kubeletDirectory()}

// kubeletDirectory returns the directory that the device manager always uses. On Windows it
// is on the system drive.
func kubeletDirectory() string {
	if runtime.GOOS == "windows" {
		return os.Getenv("SYSTEMDRIVE") + filepath.Clean(filepath.FromSlash(pluginapi.DevicePluginPath))
	}
	return filepath.Clean(pluginapi.DevicePluginPath)
}

type testDirectory struct {
	path string
	// created lists the folders that did not exist before, outermost first.
	created []string
	// lock excludes other runs of these tests while it is open.
	lock io.Closer
}

func (d *testDirectory) file(name string) string { return filepath.Join(d.path, name) }

// take creates the directory. It rejects a directory that a kubelet uses or has used,
// because the device manager would delete its sockets and overwrite its checkpoint.
func (d *testDirectory) take() (err error) {
	// Another run of these tests, such as one in another clone, goes first.
	lock := filepath.Join(os.TempDir(), "directx-device-plugin-kubelet-tests.lock")
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if d.lock, err = lockFile(lock); err == nil {
			break
		}
		if time.Since(start) > runLimit {
			return fmt.Errorf("another run of these tests seems to use %s: %w", d.path, err)
		}
	}
	if connection, err := net.DialTimeout("unix", d.file("kubelet.sock"), time.Second); err == nil {
		connection.Close()
		return fmt.Errorf("a kubelet listens on %s\nhint: run these tests on a machine without a kubelet", d.file("kubelet.sock"))
	}
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(d.file(marker)); len(entries) > 0 && err != nil {
		return fmt.Errorf("%s contains files that these tests did not create, such as %s; a kubelet seems to use it", d.path, entries[0].Name())
	}
	if err := d.create(); err != nil {
		return fmt.Errorf("%w\nhint: run the tests as a user with permission to create %s", err, d.path)
	}
	return d.empty()
}

func (d *testDirectory) create() error {
	for missing := d.path; ; missing = filepath.Dir(missing) {
		if _, err := os.Stat(missing); err == nil {
			break
		}
		d.created = append([]string{missing}, d.created...)
	}
	return os.MkdirAll(d.file(marker), 0o755)
}

// empty removes everything except the marker.
func (d *testDirectory) empty() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == marker {
			continue
		}
		if err := os.RemoveAll(d.file(entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// aside is the path of a file in the marker, where no kubelet looks.
func (d *testDirectory) aside(name string) string { return filepath.Join(d.file(marker), name) }

// pluginSockets returns the paths of the sockets in the directory except the kubelet's.
func (d *testDirectory) pluginSockets(t *testing.T) []string {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".sock" && entry.Name() != "kubelet.sock" {
			paths = append(paths, d.file(entry.Name()))
		}
	}
	return paths
}

// clear empties the directory between tests.
func (d *testDirectory) clear(t *testing.T) {
	if err := d.empty(); err != nil {
		t.Errorf("cannot clean up: %v", err)
	}
}

// restore removes what take has created.
func (d *testDirectory) restore() error {
	defer d.lock.Close()
	if err := d.empty(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.file(marker)); err != nil {
		return err
	}
	for i := len(d.created) - 1; i >= 0; i-- {
		if err := os.Remove(d.created[i]); err != nil {
			return err
		}
	}
	return nil
}
