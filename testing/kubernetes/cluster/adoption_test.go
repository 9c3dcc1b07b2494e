package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installer installs in a namespace of its own, with kubectl and helm.
type installer struct {
	t         *testing.T
	namespace string
}

func newInstaller(t *testing.T, namespace string) installer {
	t.Helper()
	object := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := api.CoreV1().Namespaces().Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return installer{t, namespace}
}

// apply applies a manifest of deploy, changed for the namespace, and returns what kubectl prints.
func (i installer) apply(manifest string, changes ...string) (string, error) {
	i.t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../deploy", manifest))
	if err != nil {
		i.t.Fatal(err)
	}
	changes = append(changes, "kube-system", i.namespace, "registry.example.com", "registry.your-company.example")
	path := filepath.Join(i.t.TempDir(), manifest)
	if err := os.WriteFile(path, []byte(strings.NewReplacer(changes...).Replace(string(text))), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return i.run(exec.Command(kubectl, "--kubeconfig", filepath.Join(folder, "kubeconfig"), "apply", "-f", path))
}

// helm installs or updates the release with these values.
func (i installer) helm(release string, more ...string) (string, error) {
	arguments := []string{"upgrade", "--install", release, chart, "--namespace", i.namespace, "--kubeconfig", filepath.Join(folder, "kubeconfig"), "--set", pushedImage}
	return i.run(helmCommand(append(arguments, more...)...))
}

func (i installer) run(command *exec.Cmd) (string, error) {
	i.t.Helper()
	output, err := command.CombinedOutput()
	i.t.Logf("%s: %v\n%s", strings.Join(command.Args[1:], " "), err, output)
	return string(output), err
}

func (i installer) daemonSet(name string) *appsv1.DaemonSet {
	i.t.Helper()
	found, err := api.AppsV1().DaemonSets(i.namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	return found
}

// Helm adopts the objects of a manifest, and kubectl those of Helm, without a new pod: the DaemonSets remain, and their pods have
// the same template.
func TestFromManifestToChart(t *testing.T) {
	t.Parallel()
	for _, change := range []struct {
		manifest, release string
		values            []string
	}{
		{"directx-device-plugin.yml", "directx-device-plugin", nil},
		{"feature-discovery.yml", "directx-device-plugin", []string{"--set", "featureDiscovery.enabled=true"}},
		{"default-daemonsets.yml", "device-plugin-wddm", []string{"--values", "../../../deploy/values/default-daemonsets/device-plugin-wddm.yaml", "--set", "manifest=false"}},
		{"aks.yml", "device-plugin-legacy", []string{"--values", "../../../deploy/values/aks/device-plugin-legacy.yaml", "--set", "manifest=false"}},
	} {
		t.Run(change.manifest, func(t *testing.T) {
			i := newInstaller(t, "adopted-"+strings.TrimSuffix(change.manifest, ".yml"))
			if _, err := i.apply(change.manifest); err != nil {
				t.Fatal(err)
			}
			name := change.release
			if change.manifest == "feature-discovery.yml" {
				name = accountName
			}
			before := i.daemonSet(name)
			if output, err := i.helm(change.release, change.values...); err == nil || !strings.Contains(output, "invalid ownership metadata") {
				t.Errorf("helm adopts the objects without being told to: %s", output)
			}
			if _, err := i.helm(change.release, append(change.values, "--take-ownership", "--force-conflicts")...); err != nil {
				t.Error(err)
			}
			after := i.daemonSet(name)
			if before.UID != after.UID || before.Generation != after.Generation {
				t.Errorf("the generation of the DaemonSet was %d, and is %d", before.Generation, after.Generation)
			}
			if _, err := i.apply(change.manifest); err != nil {
				t.Error(err)
			}
			if now := i.daemonSet(name); now.Generation != before.Generation {
				t.Errorf("the generation of the DaemonSet was %d, and is %d", before.Generation, now.Generation)
			}
		})
	}
}

// A DaemonSet with another selector cannot be changed, and the text of the error is in the documentation.
func TestOtherSelectors(t *testing.T) {
	t.Parallel()
	i := newInstaller(t, "other-selectors")
	if _, err := i.apply("directx-device-plugin.yml", "app.kubernetes.io/name: directx-device-plugin", "app: directx-device-plugin"); err != nil {
		t.Fatal(err)
	}
	if output, err := i.apply("directx-device-plugin.yml"); err == nil || !strings.Contains(output, "field is immutable") {
		t.Errorf("kubectl prints %s", output)
	}
	if output, err := i.helm("directx-device-plugin", "--take-ownership", "--force-conflicts"); err == nil || !strings.Contains(output, "field is immutable") {
		t.Errorf("helm prints %s", output)
	}
}
