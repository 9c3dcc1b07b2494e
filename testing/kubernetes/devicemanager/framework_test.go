package kubelet

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"
)

// The resources of the framework's examples. The widgets have the IDs a, b and c.
const (
	widget  = "example.com/widget"
	gadget  = "example.com/gadget"
	encoder = "example.com/encoder"
	decoder = "example.com/decoder"
)

// startExample starts an example of the framework.
func startExample(t *testing.T, name string, arguments ...string) *plugin {
	t.Helper()
	example, err := programs.Find("examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return startCommand(t, exec.Command(example, arguments...))
}

// The complete plugin in the documentation of the framework registers with a kubelet, and a
// container gets what it answers.
func TestFrameworkMinimal(t *testing.T) {
	nodeLog.start(t)
	n := startNode(t)
	p := startExample(t, "minimal")
	widgets := func() count { return n.count(widget) }
	eventually(t, p, widget, devices(3, 3), widgets)

	pod := n.mustAdmit(podFor("pod", widget, 2))
	given := strings.Split(n.container(pod).Envs["WIDGETS"], ",")
	slices.Sort(given)
	if allocated := n.deviceIDs(pod); len(allocated) != 2 || !slices.Equal(given, allocated) {
		t.Errorf("the container has the widgets %q, allocated are %q", given, allocated)
	}
	n.mustRefuse(podFor("one-too-many", widget, 2), tooMany(widget, 2, 1))

	n.restartKubelet()
	eventually(t, p, widget, devices(3, 3), widgets)
	p.end(kill)
	eventually(t, nil, widget, devices(3, 0), widgets)
}

// A device that breaks is unhealthy, and the probe follows what the kubelet knows.
func TestFrameworkHealth(t *testing.T) {
	nodeLog.start(t)
	folder, address := t.TempDir(), freeAddress(t)
	for _, id := range []string{"a", "b"} {
		write(t, filepath.Join(folder, id), "")
	}
	n := startNode(t)
	p := startExample(t, "health", folder, address)
	gadgets := func() count { return n.count(gadget) }
	eventually(t, p, gadget, devices(2, 2), gadgets)
	eventually(t, p, "probe", 200, func() int { return probe(address) })

	write(t, filepath.Join(folder, "a"), "broken")
	eventually(t, p, gadget, devices(2, 1), gadgets)
	pod := n.mustAdmit(podFor("pod", gadget, 1))
	container := n.container(pod)
	expected := []deviceOption{{filepath.Join(folder, "b"), "/dev/gadgets/b", "r"}}
	if !slices.Equal(container.Devices, expected) {
		t.Errorf("the container has %v, expected %v", container.Devices, expected)
	}
	write(t, filepath.Join(folder, "a"), "")
	eventually(t, p, gadget, devices(2, 2), gadgets)

	n.stopKubelet()
	eventually(t, p, "probe", 503, func() int { return probe(address) })
	n.startKubelet("none", nil)
	eventually(t, p, "probe", 200, func() int { return probe(address) })
	p.end(kill)
}

// Two resources of one plugin have topology hints, a preference and, with a newer kubelet, CDI names.
func TestFrameworkTopology(t *testing.T) {
	nodeLog.start(t)
	n := startNodeWithTopology(t, "none", []int{0, 1})
	p := startExample(t, "topology")
	for _, resource := range []string{encoder, decoder} {
		eventually(t, p, resource, devices(4, 4), func() count { return n.count(resource) })
	}
	pod := n.mustAdmit(podFor("pod", encoder, 2))
	ids := n.deviceIDs(pod)
	if len(ids) != 2 || ids[0][0] != ids[1][0] {
		t.Errorf("the devices %q are not of one NUMA node", ids)
	}
	names := n.container(pod).CDIDevices
	slices.Sort(names)
	if expected := []string{encoder + "=" + ids[0], encoder + "=" + ids[1]}; hasCDI && !slices.Equal(names, expected) {
		t.Errorf("the container has the CDI devices %q, expected %q", names, expected)
	}
	other := podFor("other", decoder, 1)
	if hints := n.kubelet.hints(other, &other.Spec.Containers[0], decoder); len(hints) == 0 {
		t.Error("the devices have no topology hints")
	}
	n.mustAdmit(other)
	p.end(kill)
}

// probe returns the status of an answer to HTTP, or 0.
func probe(address string) int {
	answer, err := http.Get("http://" + address)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// freeAddress returns an address that no program uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
