package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// waitLimit bounds every wait for something that takes seconds on an idle machine.
const waitLimit = 2 * time.Minute

// statusPeriod is how often a kubelet of the cluster looks for changes of its node.
const statusPeriod = time.Second

// programs are what the tests run, by the environment variables that name them.
var programs = map[string]string{
	"CONTROL_PLANE": "", "DIRECTX_DEVICE_PLUGIN": "", "DIRECTX_FEATURE_DISCOVERY": "", "FLEET": "",
}

func controlPlane() string { return programs["CONTROL_PLANE"] }
func plugin() string       { return programs["DIRECTX_DEVICE_PLUGIN"] }
func discovery() string    { return programs["DIRECTX_FEATURE_DISCOVERY"] }
func fleetProgram() string { return programs["FLEET"] }

var (
	// folder is the cluster's folder.
	folder string
	// administrator may do everything.
	administrator *rest.Config
	// api is the administrator's client.
	api *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	for variable := range programs {
		path, err := exec.LookPath(os.Getenv(variable))
		if err != nil {
			return 1, fmt.Errorf("%s is not the path of a program: %w", variable, err)
		}
		programs[variable] = path
	}
	if folder, err = os.MkdirTemp("", "cluster-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	start := time.Now()
	cluster, err := startProcess(filepath.Join(folder, "up.log"), controlPlane(), "up", "--folder", folder)
	if err != nil {
		return 1, err
	}
	defer cluster.kill()
	if err := connect(cluster); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, tail(cluster.log))
	}
	for _, manifest := range accountManifests {
		if err := applyManifest(manifest); err != nil {
			return 1, fmt.Errorf("%s: %w", manifest, err)
		}
	}
	version, err := api.Discovery().ServerVersion()
	if err != nil {
		return 1, err
	}
	fmt.Printf("cluster %s, ready after %.1f s\n", version.GitVersion, time.Since(start).Seconds())
	return m.Run(), nil
}

// connect waits for the cluster and sets the clients.
func connect(cluster *process) error {
	kubeconfig := filepath.Join(folder, "kubeconfig")
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(kubeconfig); err == nil {
			break
		}
		if err := cluster.alive(); err != nil {
			return err
		}
		if time.Since(start) > waitLimit {
			return fmt.Errorf("the cluster is not ready after %v", waitLimit)
		}
	}
	var err error
	if administrator, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	// The tests of all nodes ask in parallel, and often.
	administrator.QPS = -1
	api, err = kubernetes.NewForConfig(administrator)
	return err
}
