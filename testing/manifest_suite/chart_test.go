package manifests

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const chart = "deploy/charts/directx-device-plugin"

// The release of every test.
const (
	release          = "gpus"
	releaseNamespace = "device-plugins"
)

// runHelm runs helm with a home of its own and returns standard output and standard error.
func runHelm(t *testing.T, arguments ...string) (stdout, stderr string, err error) {
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

// render runs `helm template`.
func render(t *testing.T, values string) (manifest, messages string, err error) {
	t.Helper()
	return runHelm(t, "template", release, filepath.Join(repository, chart),
		"--namespace", releaseNamespace, "--values", valuesFile(t, values))
}

// mustRender renders the chart and passes the result to the API server's code.
func mustRender(t *testing.T, values string) objects {
	t.Helper()
	manifest, messages, err := render(t, values)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, messages)
	}
	found, err := admit(manifest)
	if err != nil {
		t.Fatalf("%v\n%s", err, manifest)
	}
	return found
}

// advertisement is what a DaemonSet advertises on a recorded host.
type advertisement struct {
	daemonSet, inventory string
	resources            map[string]int64
}

// variants are values of the chart.
var variants = []struct {
	name, values string
	advertised   []advertisement
	// check looks at the objects.
	check func(t *testing.T, found objects)
	// relaxed variants change on purpose what mustBeSafe demands.
	relaxed bool
	// others are ConfigMaps that the chart does not contain.
	others []*corev1.ConfigMap
}{
	{
		name: "defaults",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 2, compute: 0}},
			{"gpus-directx-device-plugin", npu, map[string]int64{display: 1, compute: 1}},
		},
		check: func(t *testing.T, found objects) {
			if len(found.configMaps) != 0 || len(found.daemonSets[0].Spec.Template.Annotations) != 0 {
				t.Error("a chart without configuration has a ConfigMap or annotations")
			}
			mustEqual(t, "namespace", found.daemonSets[0].Namespace, releaseNamespace)
			mustEqual(t, "image", found.daemonSets[0].Spec.Template.Spec.Containers[0].Image,
				"ghcr.io/directx-device-plugin/directx-device-plugin:"+appVersion(t))
		},
	},
	{
		name:   "one driver model",
		values: "driverModels: [mcdm]",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", npu, map[string]int64{compute: 1}},
		},
	},
	{
		name:   "the resource of the plugin of 2019",
		values: "driverModels: [legacy]\nenv:\n- name: DIRECTX_GPU_MATCH_NAME\n  value: amd",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoVendors, map[string]int64{"microsoft.com/directx": 1}},
		},
	},
	{
		name:   "environment variables",
		values: "env:\n- name: WDDM_DEVICE_PLUGIN_MULTITENANCY\n  value: '4'",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 8, compute: 0}},
		},
	},
	{
		name:   "the only configuration",
		values: "config:\n  map:\n    shared: |\n      multitenancy: 4",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 8, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			mustEqual(t, "ConfigMap", found.configMaps[0].Name, "gpus-directx-device-plugin")
			mustEqual(t, "namespace of the ConfigMap", found.configMaps[0].Namespace, releaseNamespace)
		},
	},
	{
		name:   "one of several configurations",
		values: "config:\n  map: {shared: 'multitenancy: 4', exclusive: 'multitenancy: 1'}\n  default: exclusive",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 2, compute: 0}},
		},
	},
	{
		name:   "an existing ConfigMap",
		values: "config:\n  name: from-elsewhere\n  default: shared",
		others: []*corev1.ConfigMap{{
			ObjectMeta: metav1.ObjectMeta{Name: "from-elsewhere", Namespace: releaseNamespace},
			Data:       map[string]string{"shared": "multitenancy: 3"},
		}},
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 6, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			if len(found.configMaps) != 0 {
				t.Error("the chart has a ConfigMap in addition to the existing one")
			}
		},
	},
	{
		name: "pools",
		values: `
nodeSelector: {region: west}
config:
  default: exclusive
  map:
    exclusive: "multitenancy: 1"
    shared: "multitenancy: 4"
    nvidia: |
      resources:
      - name: nvidia.com/gpu
        match: {vendor: nvidia}
pools:
- {name: a, nodeSelector: {pool: a}, config: shared, driverModels: [wddm]}
- {name: b, nodeSelector: {pool: b, kubernetes.io/os: linux}}
- {name: c, nodeSelector: {pool: c, region: east}, config: nvidia}
`,
		advertised: []advertisement{
			{"gpus-directx-device-plugin-a", twoT4, map[string]int64{display: 8}},
			{"gpus-directx-device-plugin-b", twoT4, map[string]int64{display: 2, compute: 0}},
			{"gpus-directx-device-plugin-c", twoVendors, map[string]int64{"nvidia.com/gpu": 1, display: 1, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			selectors := []map[string]string{}
			regions := []string{}
			for _, daemonSet := range found.daemonSets {
				selectors = append(selectors, daemonSet.Spec.Selector.MatchLabels)
				regions = append(regions, daemonSet.Spec.Template.Spec.NodeSelector["region"])
			}
			for i, selector := range selectors {
				for j, other := range found.daemonSets {
					if i != j && matches(selector, other.Spec.Template.Labels) {
						t.Errorf("the DaemonSet %d selects the pods of the DaemonSet %d", i, j)
					}
				}
			}
			// The labels of a pool take precedence over those of the chart.
			mustEqual(t, "regions", strings.Join(regions, " "), "west west east")
		},
	},
	{
		name:   "a long name and a pool",
		values: "fullnameOverride: " + strings.Repeat("n", 63) + "\npools:\n- {name: a-pool, nodeSelector: {pool: a}}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "name", found.daemonSets[0].Name, strings.Repeat("n", 56)+"-a-pool")
		},
	},
	{
		name:   "other names",
		values: "nameOverride: plugin\nnamespaceOverride: kube-system\nconfig: {map: {a: 'multitenancy: 2'}}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "name", found.daemonSets[0].Name, "gpus-plugin")
			mustEqual(t, "name of the ConfigMap", found.configMaps[0].Name, "gpus-plugin")
			mustEqual(t, "namespace", found.daemonSets[0].Namespace, "kube-system")
			mustEqual(t, "namespace of the ConfigMap", found.configMaps[0].Namespace, "kube-system")
		},
	},
	{
		name:   "names of digits",
		values: "fullnameOverride: '12'\nnameOverride: '34'\nnamespaceOverride: '56'\nconfig: {map: {'78': 'multitenancy: 2'}}",
		advertised: []advertisement{
			{"12", twoT4, map[string]int64{display: 4, compute: 0}},
		},
	},
	{
		name:   "a name that is in the name of the release",
		values: "nameOverride: gpu",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "name", found.daemonSets[0].Name, release)
		},
	},
	{
		name:   "a tag",
		values: "image: {repository: 'localhost:5000/plugin', tag: test, pullPolicy: Always}\nimagePullSecrets: [{name: secret}]",
		check: func(t *testing.T, found objects) {
			pod := found.daemonSets[0].Spec.Template.Spec
			mustEqual(t, "image", pod.Containers[0].Image, "localhost:5000/plugin:test")
			mustEqual(t, "pull policy", string(pod.Containers[0].ImagePullPolicy), "Always")
			mustEqual(t, "pull secret", pod.ImagePullSecrets[0].Name, "secret")
		},
	},
	{
		name:   "a digest",
		values: "image: {repository: example.com/plugin, tag: test, digest: 'sha256:" + strings.Repeat("0", 64) + "'}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "image", found.daemonSets[0].Spec.Template.Spec.Containers[0].Image,
				"example.com/plugin@sha256:"+strings.Repeat("0", 64))
		},
	},
	{
		name:   "log options",
		values: "logFormat: json\nlogLevel: debug",
		check: func(t *testing.T, found objects) {
			words := strings.Join(found.daemonSets[0].Spec.Template.Spec.Containers[0].Args, " ")
			mustEqual(t, "arguments", words, "serve --driver-model=wddm --driver-model=mcdm --log-format=json --log-level=debug")
		},
	},
	{
		name:    "scheduling",
		relaxed: true,
		values: `
nodeSelector: {pool: gpu}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: node.kubernetes.io/windows-build, operator: NotIn, values: [10.0.17763]}
tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]
priorityClassName: ""
updateStrategy: {type: OnDelete}
resources: {limits: {cpu: 1, memory: 512Mi}, requests: {cpu: 1, memory: 512Mi}}
podAnnotations: {example.com/a: "1"}
podLabels: {example.com/b: "2", app.kubernetes.io/name: other}
config: {map: {a: "multitenancy: 2"}}
`,
		check: func(t *testing.T, found objects) {
			daemonSet := found.daemonSets[0]
			pod := daemonSet.Spec.Template.Spec
			terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			mustEqual(t, "affinity", terms[0].MatchExpressions[0].Values[0], "10.0.17763")
			mustEqual(t, "toleration", pod.Tolerations[0].Key, "sku")
			mustEqual(t, "priority class", pod.PriorityClassName, "")
			mustEqual(t, "update strategy", string(daemonSet.Spec.UpdateStrategy.Type), string(appsv1.OnDeleteDaemonSetStrategyType))
			mustEqual(t, "memory limit", pod.Containers[0].Resources.Limits.Memory().String(), "512Mi")
			mustEqual(t, "node selector", pod.NodeSelector["pool"], "gpu")
			mustEqual(t, "annotation", daemonSet.Spec.Template.Annotations["example.com/a"], "1")
			mustEqual(t, "label", daemonSet.Spec.Template.Labels["example.com/b"], "2")
			mustEqual(t, "name label", daemonSet.Spec.Template.Labels["app.kubernetes.io/name"], "directx-device-plugin")
		},
	},
}

// TestChart renders the chart with every variant of the values.
func TestChart(t *testing.T) {
	for _, variant := range variants {
		t.Run(variant.name, func(t *testing.T) {
			found := mustRender(t, variant.values)
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

// TestChangedConfigurationRestartsPods compares the pods of two configurations: a plugin reads
// its configuration only when it starts.
func TestChangedConfigurationRestartsPods(t *testing.T) {
	template := func(count, other string) corev1.PodTemplateSpec {
		values := "config: {default: used, map: {used: 'multitenancy: " + count + "', unused: 'multitenancy: " + other + "'}}"
		return mustRender(t, values).daemonSets[0].Spec.Template
	}
	if maps.Equal(template("2", "1").Annotations, template("3", "1").Annotations) {
		t.Error("a changed configuration does not change the pods")
	}
	if !maps.Equal(template("2", "1").Annotations, template("2", "9").Annotations) {
		t.Error("a configuration that the pods do not use changes them")
	}
}

// TestInvalidValuesAreRefused checks that a mistake in the values is an error that names it.
func TestInvalidValuesAreRefused(t *testing.T) {
	for _, invalid := range []struct{ name, values, message string }{
		{"unknown value", "driverModel: wddm", "additional properties 'driverModel' not allowed"},
		{"unknown value of the image", "image: {version: 1.0.0}", "additional properties 'version' not allowed"},
		{"feature that does not exist", "metrics: {enabled: true}", "additional properties 'metrics' not allowed"},
		{"unknown driver model", "driverModels: [vulkan]", "at '/driverModels/0': value must be one of 'wddm', 'mcdm', 'legacy'"},
		{"no driver model", "driverModels: []", "at '/driverModels': minItems: got 0, want 1"},
		{"driver model twice", "driverModels: [wddm, wddm]", "at '/driverModels': items at 0 and 1 are equal"},
		{"legacy with another driver model", "driverModels: [legacy, wddm]", "at '/driverModels': maxItems: got 2, want 1"},
		{"surge", "updateStrategy: {rollingUpdate: {maxSurge: 1}}", "at '/updateStrategy/rollingUpdate/maxSurge'"},
		{"tag that is a number", "image: {tag: 1.0}", "at '/image/tag': got number, want string"},
		{"invalid digest", "image: {digest: 'sha256:12'}", "at '/image/digest'"},
		{"repository with a tag", "image: {repository: 'example.com/plugin:1.0'}", "at '/image/repository'"},
		{"unknown pull policy", "image: {pullPolicy: Sometimes}", "at '/image/pullPolicy'"},
		{"unknown log level", "logLevel: verbose", "at '/logLevel': value must be one of 'error', 'warn', 'info', 'debug', 'trace'"},
		{"variable without name", "env: [{value: '4'}]", "at '/env/0': missing property 'name'"},
		{"variable that is a number", "env: [{name: WDDM_DEVICE_PLUGIN_MULTITENANCY, value: 4}]", "at '/env/0/value': got number, want string"},
		{"invalid namespace", "namespaceOverride: Kube_System", "at '/namespaceOverride'"},
		{"unknown key of a toleration", "tolerations: [{taint: x}]", "additional properties 'taint' not allowed"},
		{"configuration that is no text", "config: {map: {a: {multitenancy: 4}}}", "at '/config/map/a': got object, want string"},
		{"pool without nodes", "pools: [{name: a}]", "at '/pools/0': missing property 'nodeSelector'"},
		{"pool of all nodes", "pools: [{name: a, nodeSelector: {}}]", "at '/pools/0/nodeSelector': minProperties: got 0, want 1"},
		{"invalid name of a pool", "pools: [{name: A, nodeSelector: {pool: a}}]", "at '/pools/0/name'"},
		{"two pools with one name", "pools: [{name: a, nodeSelector: {pool: a}}, {name: a, nodeSelector: {pool: b}}]",
			"pools[1] (a) has the same name as another pool"},
		{"ConfigMap in and outside the chart", "config: {name: x, default: a, map: {a: ''}}", "config.name and config.map cannot be combined"},
		{"no configuration selected", "config: {map: {b: '', a: ''}}", "config.default selects no configuration: set config.default to one of: a, b"},
		{"no configuration of an existing ConfigMap selected", "config: {name: x}", "config.default selects no configuration: set config.default"},
		{"configuration that does not exist", "config: {default: c, map: {a: '', b: ''}}",
			`config.default selects the configuration "c", which config.map does not have; it has: a, b`},
		{"configuration of a pool that does not exist", "pools: [{name: x, nodeSelector: {pool: a}, config: c}]",
			`pools[0] (x) selects the configuration "c", which config.map does not have`},
	} {
		t.Run(invalid.name, func(t *testing.T) {
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
			"--values", valuesFile(t, values)}, more...)
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
	text = notes("config: {map: {c: ''}}\npools: [{name: a, nodeSelector: {pool: a}, config: c}, {name: b, nodeSelector: {pool: b}}]")
	mustContain(text,
		"rollout status daemonset/gpus-directx-device-plugin-a\n", "rollout status daemonset/gpus-directx-device-plugin-b\n",
		"   a: nodes with pool=a use the configuration c\n", "   b: nodes with pool=b use the configuration c\n")
}

// TestDocumentedValues renders the chart with every example of the documentation.
func TestDocumentedValues(t *testing.T) {
	for _, page := range []string{"docs/helm.md", chart + "/README.md"} {
		blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no example", page)
		}
		for _, block := range blocks {
			found := mustRender(t, block[1])
			for _, daemonSet := range found.daemonSets {
				newContainer(t, daemonSet, found.configMaps).capacity(twoT4)
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
		if name != "image" && name != "config" {
			expected = append(expected, name)
			continue
		}
		for inner := range group {
			expected = append(expected, name+"."+inner)
		}
	}
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

// matches reports whether labels contain every label of a selector.
func matches(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}

func mustEqual(t *testing.T, what, got, expected string) {
	t.Helper()
	if got != expected {
		t.Errorf("%s: got %q, expected %q", what, got, expected)
	}
}
