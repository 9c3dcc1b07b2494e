// Program control_plane contains etcd and the Kubernetes components of one release, so that tests
// have a real cluster on a machine without one:
//
//	control_plane up --folder DIR              etcd, API server, scheduler, controller manager
//	control_plane api-server --folder DIR --port PORT
//	control_plane runtime --folder DIR --node NAME
//	control_plane kubelet --folder DIR --node NAME [--affinity] [--standalone FILE]
//
// Everything listens on loopback, keeps its files in DIR, and ends with the process that has
// started it. DIR/kubeconfig belongs to an administrator. The command api-server runs one more API
// server of the cluster, which a test may kill; its audit log is DIR/audit-PORT.log.
//
// The kubelet and the controller manager are those of Kubernetes. The container runtime is
// Kubernetes' own fake, in a process of its own, as on a node: containers survive a restart of the
// kubelet. It runs nothing, and writes what it was asked to run to DIR/nodes/NAME/containers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// commands are what a user of the program calls. They take a folder and a node's name.
var commands = map[string]func(context.Context, options) error{
	"up":         up,
	"api-server": runAPIServer,
	"runtime":    runRuntime,
	"kubelet":    runKubelet,
}

// options are the arguments of a command.
type options struct {
	folder string
	node   string
	// port is for an API server.
	port int
	// affinity is for a kubelet with the feature gate WindowsCPUAndMemoryAffinity.
	affinity bool
	// standalone is the configuration file of a kubelet without API server.
	standalone string
}

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("no command"))
	}
	name := os.Args[1]
	switch name {
	case "kube-apiserver":
		component(func() int { return cli.Run(apiserver.NewAPIServerCommand()) })
	case "kube-scheduler":
		component(func() int { return cli.Run(scheduler.NewSchedulerCommand()) })
	case "kube-controller-manager":
		component(func() int { return cli.Run(controllers.NewControllerManagerCommand()) })
	}
	run, ok := commands[name]
	if !ok {
		fail(fmt.Errorf("unknown command %q", name))
	}
	options, err := parse(name, os.Args[2:])
	if err == nil {
		err = endWithParent()
	}
	if err == nil {
		err = isolate(options.folder)
	}
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, options); err != nil {
		fail(err)
	}
}

// component runs a component of Kubernetes, which reads the arguments after its name.
func component(run func() int) {
	os.Args = os.Args[1:]
	os.Exit(run())
}

func parse(name string, arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&o.folder, "folder", "", "the only folder that is written")
	needsNode := name == "runtime" || name == "kubelet"
	if needsNode {
		flags.StringVar(&o.node, "node", "", "the name of the node")
	}
	if name == "api-server" {
		flags.IntVar(&o.port, "port", 0, "the port on loopback")
	}
	if name == "kubelet" {
		flags.BoolVar(&o.affinity, "affinity", false, "allocate devices when a pod is admitted")
		flags.StringVar(&o.standalone, "standalone", "", "run without API server, with this configuration file")
	}
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.folder == "" || (needsNode && o.node == "") || (name == "api-server" && o.port == 0) {
		return o, fmt.Errorf("%s: an argument is missing; `%s -h` lists them", name, name)
	}
	return o, nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
