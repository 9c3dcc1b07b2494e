package manifests

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const chart = "deploy/charts/directx-device-plugin"

// examples is the folder of values for users.
const examples = chart + "/examples/"

// The release of every test.
const (
	release          = "gpus"
	releaseNamespace = "device-plugins"
)

// The chart refuses the registry in the files of a clone, so the tests set another one.
const (
	placeholder = "registry.example.com"
	registry    = "registry.your-company.example"
	pushedImage = "image: {repository: " + registry + "/directx-device-plugin}"
)

// runHelm runs helm and returns standard output and standard error.
func runHelm(t *testing.T, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	return runVersion(t, helm, arguments...)
}

// runVersion runs a version of helm with a home of its own.
func runVersion(t *testing.T, helm string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	home := t.TempDir()
	command := exec.CommandContext(ctx, helm, arguments...)
	command.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	err = command.Run()
	return output.String(), messages.String(), err
}

// valuesFile writes values into a file and returns its path.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// render runs `helm template`. Without other values, the images are in a registry of the user.
func render(t *testing.T, values string, more ...string) (manifest, messages string, err error) {
	t.Helper()
	return runHelm(t, append(template(t, values), more...)...)
}

// template returns the arguments of `helm template`.
func template(t *testing.T, values string) []string {
	t.Helper()
	return []string{"template", release, filepath.Join(repository, chart),
		"--namespace", releaseNamespace, "--values", valuesFile(t, pushedImage), "--values", valuesFile(t, values)}
}

// mustRender renders the chart and passes the result to the API server's code. The images have the names of those in the manifests.
func mustRender(t *testing.T, values string) objects {
	t.Helper()
	manifest, messages, err := render(t, values)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, messages)
	}
	found, err := admit(strings.ReplaceAll(manifest, registry, placeholder))
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return found
}

// variantObjects returns the objects of a file of deploy, or of the chart with these values.
func variantObjects(t *testing.T, file, values string) objects {
	t.Helper()
	if file == "" {
		return mustRender(t, values)
	}
	found, err := admit(read(t, "deploy/"+file))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestChart judges every variant of the chart.
func TestChart(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "deploy/*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if !slices.ContainsFunc(variants, func(v variant) bool { return v.file == filepath.Base(path) }) {
			t.Errorf("no variant is %s", path)
		}
	}
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			found := variantObjects(t, variant.file, variant.values)
			if len(found.daemonSets) == 0 {
				t.Fatal("the chart has no DaemonSet")
			}
			if variant.check != nil {
				variant.check(t, found)
			}
			configMaps := append(found.configMaps, variant.others...)
			seen := 0
			for _, daemonSet := range found.daemonSets {
				if !variant.relaxed {
					mustBeSafe(t, daemonSet)
				}
				if !isPlugin(daemonSet) {
					continue
				}
				c := newContainer(t, daemonSet, configMaps)
				c.mustAcceptCommands()
				c.mustReadConfiguration()
				for _, expected := range variant.advertised {
					if expected.daemonSet == daemonSet.Name {
						c.mustAdvertise(expected.inventory, expected.resources)
						seen++
					}
				}
			}
			if seen != len(variant.advertised) {
				t.Errorf("%d of the %d expected DaemonSets exist", seen, len(variant.advertised))
			}
		})
	}
}

// TestDependency renders a parent chart that switches this one on and off, as Helm's documentation describes.
func TestDependency(t *testing.T) {
	parent := t.TempDir()
	if err := os.CopyFS(filepath.Join(parent, "charts/directx-device-plugin"), os.DirFS(filepath.Join(repository, chart))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: platform\nversion: 1.0.0\ndependencies:\n" +
			"- {name: directx-device-plugin, version: '>=0.0.0-0', condition: directx-device-plugin.enabled}\n",
		"values.yaml": "global: {registry: x}\ndirectx-device-plugin: {enabled: true, metrics: , config: {map: }, podLabels: , " + pushedImage + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(parent, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for isEnabled, count := range map[string]int{"true": 1, "false": 0} {
		manifest, messages, err := runHelm(t, "template", release, parent, "--namespace", releaseNamespace, "--set", "directx-device-plugin.enabled="+isEnabled)
		if err != nil {
			t.Fatalf("helm template: %v\n%s", err, messages)
		}
		if found, err := admit(manifest); err != nil || len(found.daemonSets) != count {
			t.Errorf("enabled is %s: %d DaemonSets, %v", isEnabled, len(found.daemonSets), err)
		}
	}
}

// TestChangedConfigurationReachesRunningPods compares the pods of two configurations: a plugin
// applies a changed file while it runs, and the kubelet updates no file of a subPath.
func TestChangedConfigurationReachesRunningPods(t *testing.T) {
	template := func(count string) corev1.PodTemplateSpec {
		return mustRender(t, "config: {map: {used: 'multitenancy: "+count+"'}}").daemonSets[0].Spec.Template
	}
	pods := template("2")
	if !reflect.DeepEqual(pods, template("3")) {
		t.Error("a changed configuration changes the pods, which starts a rolling update")
	}
	mounts := pods.Spec.Containers[0].VolumeMounts
	if len(mounts) != 1 || mounts[0].SubPath != "" || mounts[0].SubPathExpr != "" {
		t.Errorf("the configuration is not mounted as a whole volume: %+v", mounts)
	}
}

// TestInvalidValuesAreRefused checks that a mistake in the values is an error that names it.
func TestInvalidValuesAreRefused(t *testing.T) {
	for _, invalid := range refused(t) {
		t.Run(invalid.name, func(t *testing.T) {
			t.Parallel()
			_, messages, err := render(t, invalid.values)
			if err == nil {
				t.Fatal("helm renders the chart")
			}
			if !strings.Contains(messages, invalid.message) {
				t.Errorf("helm prints\n%s\nexpected %q", messages, invalid.message)
			}
		})
	}
}

// TestDefaultsOfAClone shows that the chart of a clone, as it is, installs nothing that does not exist.
func TestDefaultsOfAClone(t *testing.T) {
	_, messages, err := runHelm(t, "template", release, filepath.Join(repository, chart))
	if err == nil || !strings.Contains(messages, "image.repository is "+image+", which does not exist") {
		t.Errorf("got %v: %s", err, messages)
	}
}

// TestCommonLabels checks that every object has them, and that they replace no label of the chart.
func TestCommonLabels(t *testing.T) {
	manifest, messages, err := render(t, everyImage[0]+`
commonLabels: {team: graphics, number: "1", release: all, app.kubernetes.io/instance: other}
podLabels: {release: pods}
metrics: {enabled: true}
podMonitor: {enabled: true, labels: {release: monitors}}
prometheusRule: {enabled: true}
dashboard: {enabled: true}
psa: {enabled: true}
config: {map: {a: ''}}
`, "--set", "visibility.inject=true")
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, messages)
	}
	count := 0
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if object.Object == nil {
			continue
		}
		count++
		what := object.GetKind() + " " + object.GetName()
		expected := map[string]string{"PodMonitor": "monitors"}[object.GetKind()]
		mustHaveCommonLabels(t, what, object.GetLabels(), cmp.Or(expected, "all"))
		if labels, found, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels"); found {
			mustHaveCommonLabels(t, "pods of "+what, labels, "pods")
		}
	}
	if count < 22 {
		t.Errorf("the chart has only %d objects", count)
	}
}

func mustHaveCommonLabels(t *testing.T, what string, labels map[string]string, release string) {
	t.Helper()
	mustEqual(t, what, labels["team"]+" "+labels["number"]+" "+labels["release"]+" "+labels["app.kubernetes.io/instance"], "graphics 1 "+release+" gpus")
}

// TestLint runs helm's own checks, in which every finding is an error.
func TestLint(t *testing.T) {
	stdout, stderr, err := runHelm(t, "lint", "--strict", filepath.Join(repository, chart))
	if err != nil {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}

// TestNotes checks the text that helm prints after an installation.
func TestNotes(t *testing.T) {
	notes := func(values string, more ...string) string {
		arguments := append([]string{"install", release, filepath.Join(repository, chart), "--dry-run=client",
			"--values", valuesFile(t, pushedImage), "--values", valuesFile(t, values)}, more...)
		stdout, stderr, err := runHelm(t, arguments...)
		_, text, found := strings.Cut(stdout, "\nNOTES:\n")
		if err != nil || !found {
			t.Fatalf("helm install printed no notes: %v\n%s%s", err, stdout, stderr)
		}
		return text
	}
	mustContain := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("the notes do not contain %q:\n%s", part, text)
			}
		}
	}
	text := notes("", "--namespace", releaseNamespace)
	mustContain(text,
		"kubectl -n device-plugins rollout status daemonset/gpus-directx-device-plugin\n",
		`DISPLAY:.status.allocatable.directx\.microsoft\.com/display,COMPUTE:.status.allocatable.directx\.microsoft\.com/compute'`,
		"logs -l app.kubernetes.io/name=directx-device-plugin,app.kubernetes.io/instance=gpus --prefix\n",
		"kubectl label namespace device-plugins pod-security.kubernetes.io/enforce=privileged\n")
	text = notes("driverModels: [legacy]", "--namespace", "kube-system")
	mustContain(text, `DIRECTX:.status.allocatable.microsoft\.com/directx'`)
	if strings.Contains(text, "kubectl label namespace") {
		t.Errorf("the notes want to label kube-system:\n%s", text)
	}
	text = notes("featureDiscovery: {enabled: true, admissionPolicy: false}")
	mustContain(text, "daemonset/gpus-directx-device-plugin-discovery\n", "WARNING: featureDiscovery.admissionPolicy is false")
	text = notes("visibility: {enabled: true}")
	mustContain(text, "daemonset/gpus-directx-device-plugin-visible\n")
	text = notes("visibility: {enabled: true, inject: true}")
	mustContain(text, "except those with the label\ndirectx.microsoft.com/visibility-inject=disabled. The devices of a node are unhealthy until it has its files.")
	text = notes("demonstration: {enabled: true}")
	mustContain(text, "daemonset/gpus-directx-device-plugin\n", "This is a demonstration: it advertises made-up devices",
		"get nodes -l directx.microsoft.com/demonstration=true -o", "exec POD -- /directx-device-plugin status\n")
	text = notes("config: {map: {c: ''}}\npools: [{name: a, nodeSelector: {pool: a}, config: c}, {name: b, nodeSelector: {pool: b}}, {name: d, fallback: true}]")
	mustContain(text,
		"rollout status daemonset/gpus-directx-device-plugin-a\n", "rollout status daemonset/gpus-directx-device-plugin-b\n",
		"   a: nodes with pool=a use the configuration c\n", "   b: nodes with pool=b use the configuration c\n",
		"   d: nodes outside the other pools use the configuration c\n")
	if strings.Contains(text, "WARNING") {
		t.Errorf("the notes warn of pools that a label tells apart:\n%s", text)
	}
	text = notes("pools: [{name: a, nodeSelector: {gpu: t4}}, {name: b, nodeSelector: {team: dev}}]")
	mustContain(text, "WARNING: a node with the labels of a and of b would run two plugins")
	text = notes("psa: {enabled: true}", "--namespace", releaseNamespace)
	if strings.Contains(text, "kubectl label namespace") {
		t.Errorf("the notes want to label a namespace that the chart labels:\n%s", text)
	}
	mustContain(text, "   helm test gpus --namespace device-plugins\n")
}

// TestOldClusters renders the chart for clusters without the admission policies.
func TestOldClusters(t *testing.T) {
	const old = "--kube-version=1.31.4"
	_, messages, err := render(t, "featureDiscovery: {enabled: true}", old)
	if err == nil || !strings.Contains(messages, "featureDiscovery.admissionPolicy needs Kubernetes 1.32 or newer, and Helm renders the chart for v1.31.4: with `helm template`, set --kube-version") {
		t.Errorf("got %v: %s", err, messages)
	}
	const injection = "visibility: {enabled: true, inject: true}"
	_, messages, err = render(t, injection, "--kube-version=1.35.9")
	if err == nil || !strings.Contains(messages, "visibility.inject needs Kubernetes 1.36 or newer, and Helm renders the chart for v1.35.9: with `helm template`, set --kube-version") {
		t.Errorf("got %v: %s", err, messages)
	}
	if _, messages, err = render(t, injection, "--kube-version=1.36.0-eks-1"); err != nil {
		t.Errorf("%v: %s", err, messages)
	}
	for _, values := range []string{"", "featureDiscovery: {enabled: true, admissionPolicy: false}"} {
		if _, messages, err := render(t, values, old); err != nil {
			t.Errorf("%s: %v: %s", values, err, messages)
		}
	}
}

// TestDocumentedValues renders the chart with every example of the documentation.
func TestDocumentedValues(t *testing.T) {
	for _, page := range []string{"docs/helm.md"} {
		blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no example", page)
		}
		for _, block := range blocks {
			found := mustRender(t, block[1])
			for _, daemonSet := range found.daemonSets {
				if isPlugin(daemonSet) {
					newContainer(t, daemonSet, found.configMaps).capacity(twoT4)
				}
			}
		}
	}
}

// TestReadme compares the table of values in the chart's README with values.yaml.
func TestReadme(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	expected := []string{}
	for name, value := range values {
		group, _ := value.(map[string]any)
		// Groups that the README describes value by value.
		if !slices.Contains([]string{"image", "config", "sharing", "metrics", "podMonitor", "serviceMonitor", "prometheusRule", "dashboard", "visibility", "demonstration", "featureDiscovery", "serviceAccount", "rbac", "psa"}, name) {
			expected = append(expected, name)
			continue
		}
		for inner := range group {
			if inner != "apiServer" && (inner != "image" || name != "visibility" && name != "demonstration") {
				expected = append(expected, name+"."+inner)
			}
		}
	}
	expected = append(expected, "featureDiscovery.apiServer.host", "featureDiscovery.apiServer.port",
		"visibility.image.repository", "visibility.image.tag", "visibility.image.digest",
		"demonstration.image.repository", "demonstration.image.tag", "demonstration.image.digest")
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|[^|]*\\|[^|]*\\|$").FindAllStringSubmatch(read(t, chart+"/README.md"), -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(expected)
	slices.Sort(documented)
	mustEqual(t, "documented values", strings.Join(documented, " "), strings.Join(expected, " "))
}

func appVersion(t *testing.T) string {
	t.Helper()
	var description struct{ AppVersion string }
	if err := yaml.Unmarshal([]byte(read(t, chart+"/Chart.yaml")), &description); err != nil {
		t.Fatal(err)
	}
	return description.AppVersion
}

func mustEqual(t *testing.T, what, got, expected string) {
	t.Helper()
	if got != expected {
		t.Errorf("%s: got %q, expected %q", what, got, expected)
	}
}

// TestExampleOfNVIDIA renders the values that advertise nvidia.com/gpu.
func TestExampleOfNVIDIA(t *testing.T) {
	found := mustRender(t, read(t, examples+"nvidia-gpu.yaml"))
	c := newContainer(t, found.daemonSets[0], found.configMaps)
	c.mustAdvertise(twoT4, map[string]int64{"nvidia.com/gpu": 2, display: 0, compute: 0})
	c.mustAdvertise(twoVendors, map[string]int64{"nvidia.com/gpu": 1, display: 1, compute: 0})
	c.mustAdvertise(npu, map[string]int64{"nvidia.com/gpu": 1, display: 0, compute: 1})
}

// TestExampleOfMonitoring renders the values with everything for the operation of GPU nodes.
func TestExampleOfMonitoring(t *testing.T) {
	found := mustRender(t, read(t, examples+"monitoring.yaml"))
	kinds := []string{}
	for _, object := range found.custom {
		kinds = append(kinds, object.GetKind())
	}
	mustEqual(t, "objects of the Prometheus operator", strings.Join(kinds, " "), "PodMonitor PrometheusRule")
	if len(found.configMaps) != 1 {
		t.Errorf("%d ConfigMaps, not only the dashboard", len(found.configMaps))
	}
	discovery := found.daemonSets[slices.IndexFunc(found.daemonSets, isDiscovery)]
	args := strings.Join(discovery.Spec.Template.Spec.Containers[0].Args, " ")
	if !strings.Contains(args, "--startup-taint=directx.microsoft.com/not-ready") {
		t.Errorf("the arguments are %s", args)
	}
}
