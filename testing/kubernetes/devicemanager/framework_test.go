package kubelet

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"
)

// widget is the resource of the framework's example, with the devices a, b and c.
const widget = "example.com/widget"

// The complete plugin in the documentation of the framework registers with a kubelet, and a
// container gets what it answers.
func TestExampleOfTheFramework(t *testing.T) {
	nodeLog.start(t)
	example, err := programs.Find("examples/minimal")
	if err != nil {
		t.Fatal(err)
	}
	n := startNode(t)
	p := startCommand(t, exec.Command(example))
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
