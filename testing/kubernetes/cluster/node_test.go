package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// display is the resource of GPUs by default.
	display = "directx.microsoft.com/display"
	// compute is the resource of compute-only devices by default.
	compute = "directx.microsoft.com/compute"
	// twoGPUs is a host with two equal GPUs.
	twoGPUs = "../../../fixtures/inventories/aws-t4-two.yaml"
)

// node is a node of the cluster: a container runtime, a kubelet, the plugin, and in some tests the
// feature discovery.
type node struct {
	t    *testing.T
	name string
	// folder has the files of the node. Its names are those of the program control_plane.
	folder string
	// host is what the plugin finds on the node.
	host *host
	// config is the plugin's configuration file.
	config string
	// kubeletOptions are further options of the kubelet.
	kubeletOptions []string

	runtime, kubelet, plugin, discovery *process
	// daemons are the plugins, if the node has several.
	daemons []*process
}

// startNode starts a node with the two GPUs and a configuration, and waits until its resources
// are at the API server. The node is removed when the test ends.
func startNode(t *testing.T, name, config string) *node {
	t.Helper()
	n := newNode(t, name, config)
	n.startAll()
	return n
}

// startAll starts the node's programs, and waits until pods can be scheduled to it.
func (n *node) startAll() {
	n.t.Helper()
	n.startRuntime()
	n.startKubelet()
	n.startPlugin()
	eventually(n.t, "node "+n.name+" is ready", true, n.ready)
}

// newNode returns a node whose programs do not run yet.
func newNode(t *testing.T, name, config string) *node {
	t.Helper()
	n := &node{t: t, name: name, folder: filepath.Join(folder, "nodes", name)}
	// The kubelet creates it as well.
	if err := os.MkdirAll(n.devicePlugins(), 0o755); err != nil {
		t.Fatal(err)
	}
	n.host = copyInventory(t, twoGPUs, filepath.Join(n.folder, "inventory.json"))
	n.config = filepath.Join(n.folder, "config.yaml")
	n.configure(config)
	t.Cleanup(n.remove)
	return n
}

func (n *node) devicePlugins() string { return filepath.Join(n.folder, "device-plugins") }

// configure replaces the plugin's configuration.
func (n *node) configure(text string) {
	n.t.Helper()
	replaceFile(n.t, n.config, []byte(text))
}

func (n *node) startRuntime() {
	n.runtime = n.start("runtime.log", controlPlane, "runtime", "--folder", folder, "--node", n.name)
}

func (n *node) startKubelet() {
	n.kubelet = n.start("kubelet.log", controlPlane,
		append([]string{"kubelet", "--folder", folder, "--node", n.name}, n.kubeletOptions...)...)
}

func (n *node) startPlugin() {
	n.plugin = n.start("plugin.log", plugin, append(n.serve(), append(n.arguments(), "--listen=127.0.0.1:0")...)...)
}

// startDaemon starts one of several plugins on the node, with these variables and options.
func (n *node) startDaemon(log string, environment, arguments []string) *process {
	n.t.Helper()
	words := append(append(slices.Clone(environment), plugin), n.serve()...)
	words = append(append(words, "--inventory", n.host.path), arguments...)
	// `env` replaces itself by the program.
	p := n.start(log, "env", words...)
	n.daemons = append(n.daemons, p)
	return p
}

// serve is the command of a plugin on this node.
func (n *node) serve() []string {
	return []string{"serve", "--device-plugin-dir", n.devicePlugins(),
		"--pod-resources", filepath.Join(n.folder, "root/pod-resources/kubelet.sock")}
}

// arguments are those that `serve` and `simulate` have in common.
func (n *node) arguments() []string {
	return []string{"--inventory", n.host.path, "--config", n.config}
}

func (n *node) start(log, program string, arguments ...string) *process {
	n.t.Helper()
	started, err := startProcess(filepath.Join(n.folder, log), program, arguments...)
	if err != nil {
		n.t.Fatal(err)
	}
	return started
}

// remove ends the node's programs and shows their logs if the test has failed.
func (n *node) remove() {
	ours := append([]*process{n.discovery, n.plugin}, n.daemons...)
	for _, p := range ours {
		if p != nil && p.alive() == nil {
			// A program that a failed test has stopped shuts down as well.
			p.signal(n.t, syscall.SIGCONT)
			p.shutDown(n.t)
		}
	}
	for _, p := range append(ours, n.kubelet, n.runtime) {
		if p == nil {
			continue
		}
		p.kill()
		if n.t.Failed() {
			n.t.Log(tail(p.log))
		}
	}
	ctx := context.Background()
	// The controller manager then removes the pods of the node.
	_ = api.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{})
}

// object returns the node as the API server has it; without content if it is not there.
func (n *node) object() *v1.Node {
	n.t.Helper()
	object, err := api.CoreV1().Nodes().Get(context.Background(), n.name, metav1.GetOptions{})
	if err != nil {
		return &v1.Node{}
	}
	return object
}

// ready reports whether pods can be scheduled to the node: it is ready, without taints, and has
// the resource of GPUs.
func (n *node) ready() bool {
	object := n.object()
	if len(object.Spec.Taints) > 0 || object.Status.Allocatable.Name(display, "").Value() == 0 {
		return false
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == v1.NodeReady {
			return condition.Status == v1.ConditionTrue
		}
	}
	return false
}

// count is how many devices of a resource a node reports.
type count struct{ capacity, allocatable int64 }

func (c count) String() string {
	return fmt.Sprintf("capacity %d, allocatable %d", c.capacity, c.allocatable)
}

func (n *node) count(resource v1.ResourceName) count {
	return countOf(n.object(), resource)
}

func countOf(object *v1.Node, resource v1.ResourceName) count {
	capacity, allocatable := object.Status.Capacity[resource], object.Status.Allocatable[resource]
	return count{capacity.Value(), allocatable.Value()}
}

// mustHave waits until the node reports this many devices at the API server.
func (n *node) mustHave(capacity, allocatable int64) {
	n.t.Helper()
	eventually(n.t, display, count{capacity, allocatable}, func() count { return n.count(display) })
}
