package kubelet

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// program is the path of directx-device-plugin.
var program string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if program, err = programs.Find("directx-device-plugin"); err != nil {
		return 1, err
	}
	if err := directory.take(); err != nil {
		return 1, err
	}
	defer func() {
		if failure := directory.restore(); failure != nil && err == nil {
			code, err = 1, failure
		}
	}()
	captureKubeletLog()
	fmt.Printf("kubelet %s against %s\n", kubeletVersion(), program)
	return m.Run(), nil
}

// kubeletVersion returns the version of k8s.io/kubernetes in this test program. It takes it
// from the path of the sources, because a test program's build information lists no modules.
func kubeletVersion() string {
	entry := reflect.ValueOf(devicemanager.NewManagerImpl).Pointer()
	file, _ := runtime.FuncForPC(entry).FileLine(entry)
	_, after, _ := strings.Cut(file, "k8s.io/kubernetes@")
	version, _, _ := strings.Cut(after, "/")
	return version
}
