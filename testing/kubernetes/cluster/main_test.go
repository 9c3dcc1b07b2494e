package cluster

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"directx-device-plugin/testing/kubernetes/programs"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// waitLimit bounds every wait for something that takes seconds on an idle machine.
const waitLimit = 2 * time.Minute

// parallelTests is how many tests run at the same time, unless `-parallel` says otherwise. They mostly
// wait, some of them for a minute.
const parallelTests = "8"

// statusPeriod is how often a kubelet of the cluster looks for changes of its node.
const statusPeriod = time.Second

// The paths of the programs that the tests run.
var plugin, discovery, fleetProgram, controlPlane, helm, kubectl string

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
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(parallelTests); err != nil {
			return 1, err
		}
	}
	for name, path := range map[string]*string{
		"directx-device-plugin": &plugin, "directx-feature-discovery": &discovery, "fleet": &fleetProgram,
	} {
		if *path, err = programs.Find(name); err != nil {
			return 1, err
		}
	}
	if controlPlane, err = buildControlPlane(); err != nil {
		return 1, err
	}
	if kubectl, err = exec.LookPath("kubectl"); err != nil {
		return 1, err
	}
	if helm, err = exec.LookPath("helm"); err != nil {
		return 1, err
	}
	if folder, err = os.MkdirTemp("", "cluster-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(folder)
	start := time.Now()
	cluster, err := startProcess(filepath.Join(folder, "up.log"), controlPlane, "up", "--folder", folder)
	if err != nil {
		return 1, err
	}
	defer cluster.kill()
	if err := connect(cluster); err != nil {
		return 1, fmt.Errorf("%w\n%s", err, tail(cluster.log))
	}
	if err := applyManifest(accountManifest); err != nil {
		return 1, fmt.Errorf("%s: %w", accountManifest, err)
	}
	// The controller manager creates it. Without it, no pod can be created.
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := api.CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if time.Since(begin) > waitLimit {
			return 1, err
		}
	}
	version, err := api.Discovery().ServerVersion()
	if err != nil {
		return 1, err
	}
	fmt.Printf("cluster %s, ready after %.1f s\n", version.GitVersion, time.Since(start).Seconds())
	return m.Run(), nil
}

// buildControlPlane builds the cluster. Kubernetes' programs have their version from the linker.
func buildControlPlane() (string, error) {
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(string(text))
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	const variable = " -X k8s.io/component-base/version.git"
	return programs.Build("control-plane", "../control_plane",
		variable+"Version="+version+variable+"Major="+numbers[0]+variable+"Minor="+numbers[1])
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
