package manifests

import (
	"bytes"
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
func render(t *testing.T, values string, more ...string) (manifest, messages string, err error) {
	t.Helper()
	arguments := []string{"template", release, filepath.Join(repository, chart),
		"--namespace", releaseNamespace, "--values", valuesFile(t, values)}
	return runHelm(t, append(arguments, more...)...)
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
	const inject = "visibility: {enabled: true, inject: true}\n"
	for _, invalid := range []struct{ name, values, message string }{
		{"unknown value", "driverModel: wddm", "additional properties 'driverModel' not allowed"},
		{"unknown value of the image", "image: {version: 1.0.0}", "additional properties 'version' not allowed"},
		{"feature that does not exist", "metrics: {podMonitor: true}", "additional properties 'podMonitor' not allowed"},
		{"port out of range", "metrics: {port: 65536}", "at '/metrics/port': maximum: got 65,536, want 65,535"},
		{"unknown driver model", "driverModels: [vulkan]", "at '/driverModels/0': value must be one of 'wddm', 'mcdm', 'legacy'"},
		{"no driver model", "driverModels: []", "at '/driverModels': minItems: got 0, want 1"},
		{"driver model twice", "driverModels: [wddm, wddm]", "at '/driverModels': items at 0 and 1 are equal"},
		{"legacy with another driver model", "driverModels: [legacy, wddm]", "at '/driverModels': maxItems: got 2, want 1"},
		{"surge", "updateStrategy: {rollingUpdate: {maxSurge: 1}}", "at '/updateStrategy/rollingUpdate/maxSurge'"},
		{"tag that is a number", "image: {tag: 1.0}", "at '/image/tag': got number, want string"},
		{"invalid digest", "image: {digest: 'sha256:12'}", "at '/image/digest'"},
		{"repository with a tag", "image: {repository: 'example.com/plugin:1.0'}", "at '/image/repository'"},
		{"repository of directx-visible with a tag", "visibility: {image: {repository: 'example.com/visible:1.0'}}", "at '/visibility/image/repository'"},
		{"injection without files", "visibility: {inject: true}", "visibility.inject needs visibility.enabled"},
		{"requirement without injection", "visibility: {enabled: true, require: true}", "visibility.require and visibility.resources need visibility.inject"},
		{"injection with an unknown configuration", "visibility: {enabled: true, inject: true}\nconfig: {name: x, default: a}",
			"visibility.inject does not know the resources in the ConfigMap x: list them in visibility.resources"},
		{"injection with files switched off by a variable", inject + "env: [{name: WDDM_DEVICE_PLUGIN_VISIBILITY, value: 'Off'}]",
			`env sets WDDM_DEVICE_PLUGIN_VISIBILITY to "Off", and visibility.inject needs required: remove the variable, which the chart sets`},
		{"injection with files that are not required", inject + "env: [{name: mcdm_device_plugin_visibility, value: launcher}]",
			`env sets mcdm_device_plugin_visibility to "launcher", and visibility.inject needs required`},
		{"injection with an empty variable", inject + "env: [{name: WDDM_DEVICE_PLUGIN_VISIBILITY, value: ''}]",
			`env sets WDDM_DEVICE_PLUGIN_VISIBILITY to "", and visibility.inject needs required`},
		{"injection with a rule that does not require files", inject + "config: {map: {a: 'resources: [{name: example.com/gpu, visibility: launcher}]'}}",
			"config.map.a has a rule for example.com/gpu with visibility: launcher, and visibility.inject needs required: remove visibility from the rule"},
		{"the same in other letters for a shared resource", "config: {map: {a: '{\"Resources\": [{\"Name\": \"example.com/gpu\", \"Visibility\": \"Launcher\"}]}'}}\n" +
			"visibility: {enabled: true, inject: true, resources: [example.com/gpu.shared]}",
			"config.map.a has a rule for example.com/gpu with visibility: launcher, and visibility.inject needs required"},
		{"injection into a resource whose rule has no files", "config: {map: {a: 'resources: [{name: example.com/gpu, visibility: off}]'}}\n" +
			"visibility: {enabled: true, inject: true, resources: [example.com/gpu]}",
			"config.map.a has a rule for example.com/gpu with visibility: off, and visibility.inject applies to this resource"},
		{"invalid name of a resource", "visibility: {resources: ['gpu']}", "at '/visibility/resources/0'"},
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
			"pools[1] (a) has the same name as another DaemonSet"},
		{"a pool with the name of the Linux nodes", "linux: {enabled: true}\npools: [{name: linux, nodeSelector: {pool: a}}]",
			"pools[0] (linux) has the same name as another DaemonSet"},
		{"several configurations for Linux nodes", "linux: {enabled: true}\nconfig: {map: {a: '', b: ''}}\npools: [{name: x, nodeSelector: {pool: a}, config: a}]",
			"linux.config selects no configuration: set config.default to one of: a, b"},
		{"ConfigMap in and outside the chart", "config: {name: x, default: a, map: {a: ''}}", "config.name and config.map cannot be combined"},
		{"no configuration selected", "config: {map: {b: '', a: ''}}", "config.default selects no configuration: set config.default to one of: a, b"},
		{"no configuration of an existing ConfigMap selected", "config: {name: x}", "config.default selects no configuration: set config.default"},
		{"configuration that does not exist", "config: {default: c, map: {a: '', b: ''}}",
			`config.default selects the configuration "c", which config.map does not have; it has: a, b`},
		{"replicas beside a configuration", "sharing: {replicas: 2}\nconfig: {map: {a: ''}}", "sharing.replicas and config cannot be combined"},
		{"no replicas", "sharing: {replicas: 0}", "at '/sharing/replicas': minimum: got 0, want 1"},
		{"monitor without metrics", "podMonitor: {enabled: true}", "podMonitor.enabled needs metrics.enabled"},
		{"Services without metrics", "serviceMonitor: {enabled: true}", "serviceMonitor.enabled needs metrics.enabled"},
		{"alerts without metrics", "prometheusRule: {enabled: true}", "prometheusRule.enabled needs metrics.enabled"},
		{"dashboard without metrics", "dashboard: {enabled: true}", "dashboard.enabled needs metrics.enabled"},
		{"two monitors", "metrics: {enabled: true}\npodMonitor: {enabled: true}\nserviceMonitor: {enabled: true}",
			"podMonitor.enabled and serviceMonitor.enabled cannot be combined"},
		{"equal ports", "metrics: {enabled: true, port: 9401}\nfeatureDiscovery: {enabled: true}",
			"metrics.port and featureDiscovery.port are both 9401"},
		{"an address that the probe cannot reach", "metrics: {enabled: true, address: 10.0.0.4}\nfeatureDiscovery: {enabled: true}",
			"metrics.address is 10.0.0.4, where the probes do not reach the feature discovery: use $(NODE_IP)"},
		{"an IPv6 address without brackets", "metrics: {enabled: true, address: '::1'}",
			`metrics.address is ::1, an IPv6 address without brackets: write "[::1]"`},
		{"an address with a port", "metrics: {enabled: true, address: '10.0.0.4:9400'}", "at '/metrics/address'"},
		{"another variable as address", "metrics: {enabled: true, address: $(POD_IP)}", "at '/metrics/address'"},
		{"a taint of Kubernetes", "featureDiscovery: {enabled: true, startupTaint: node.kubernetes.io/not-ready}",
			"featureDiscovery.startupTaint is node.kubernetes.io/not-ready, a taint of Kubernetes: use a key with another prefix"},
		{"a taint of a project of Kubernetes", "featureDiscovery: {enabled: true, startupTaint: k8s.io/x}", "featureDiscovery.startupTaint is k8s.io/x"},
		{"no account", "featureDiscovery: {enabled: true}\nserviceAccount: {create: false}", "set serviceAccount.name to an account that exists"},
		{"clean-up without roles", "featureDiscovery: {enabled: true, cleanup: true}\nrbac: {create: false}", "featureDiscovery.cleanup needs rbac.create"},
		{"no port", "metrics: {port: null}", "at '/metrics': missing property 'port'"},
		{"no log format", "logFormat: null", "missing property 'logFormat'"},
		{"two pools with one selector", "pools: [{name: a, nodeSelector: {pool: x}}, {name: b, nodeSelector: {pool: x, kubernetes.io/os: windows}}]",
			"pools[0] (a) and pools[1] (b) have the same nodes"},
		{"two fallback pools", "pools: [{name: a, nodeSelector: {pool: x}}, {name: b, fallback: true}, {name: c, fallback: true}]",
			"pools[1] (b) and pools[2] (c) have the same nodes"},
		{"a pool that is no fallback", "pools: [{name: a, fallback: false}]", "at '/pools/0': missing property 'nodeSelector'"},
		{"argument that cmd changes", "extraArgs: ['--log-level=%x%']", "at '/extraArgs/0'"},
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

// TestNullSections checks that a section without values is refused, or means no values.
func TestNullSections(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	const everything = `
metrics: {enabled: true}
podMonitor: {enabled: true}
prometheusRule: {enabled: true}
dashboard: {enabled: true}
visibility: {enabled: true, inject: true}
linux: {enabled: true}
featureDiscovery: {enabled: true, cleanup: true}
psa: {enabled: true}
`
	for _, path := range sections(values, "") {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			manifest, messages, err := render(t, everything, "--set", path+"=null")
			if err == nil {
				if _, err := admit(manifest); err != nil {
					t.Error(err)
				}
			} else if !strings.Contains(messages, "missing property '"+path[strings.LastIndex(path, ".")+1:]+"'") {
				t.Error(messages)
			}
		})
	}
}

// sections returns the paths of all values that contain values.
func sections(values map[string]any, prefix string) []string {
	found := []string{}
	for name, value := range values {
		if section, ok := value.(map[string]any); ok {
			found = append(append(found, prefix+name), sections(section, prefix+name+".")...)
		}
	}
	return found
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
	text = notes("featureDiscovery: {enabled: true, admissionPolicy: false}")
	mustContain(text, "daemonset/gpus-directx-device-plugin-discovery\n", "WARNING: featureDiscovery.admissionPolicy is false")
	text = notes("visibility: {enabled: true}")
	mustContain(text, "daemonset/gpus-directx-device-plugin-visible\n")
	text = notes("visibility: {enabled: true, inject: true}")
	mustContain(text, "except those with the label\ndirectx.microsoft.com/visibility-inject=disabled. The devices of a node are unhealthy until it has its files.")
	text = notes("linux: {enabled: true}")
	mustContain(text, "daemonset/gpus-directx-device-plugin-linux\n", "   directx.microsoft.com/dxg=true \n")
	text = notes("config: {map: {c: ''}}\npools: [{name: a, nodeSelector: {pool: a}, config: c}, {name: b, nodeSelector: {pool: b}}, {name: d, fallback: true}]")
	mustContain(text,
		"rollout status daemonset/gpus-directx-device-plugin-a\n", "rollout status daemonset/gpus-directx-device-plugin-b\n",
		"   a: nodes with pool=a use the configuration c\n", "   b: nodes with pool=b use the configuration c\n",
		"   d: nodes outside the other pools use the configuration c\n")
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
	if err == nil || !strings.Contains(messages, "featureDiscovery.admissionPolicy needs Kubernetes 1.32 or newer, and this cluster has v1.31.4") {
		t.Errorf("got %v: %s", err, messages)
	}
	const injection = "visibility: {enabled: true, inject: true}"
	_, messages, err = render(t, injection, "--kube-version=1.35.9")
	if err == nil || !strings.Contains(messages, "visibility.inject needs Kubernetes 1.36 or newer, and this cluster has v1.35.9") {
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
	for _, page := range []string{"docs/helm.md", chart + "/README.md"} {
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
		if !slices.Contains([]string{"image", "config", "sharing", "metrics", "podMonitor", "serviceMonitor", "prometheusRule", "dashboard", "visibility", "linux", "featureDiscovery", "serviceAccount", "rbac", "psa"}, name) {
			expected = append(expected, name)
			continue
		}
		for inner := range group {
			if inner != "apiServer" && (inner != "image" || name != "visibility" && name != "linux") {
				expected = append(expected, name+"."+inner)
			}
		}
	}
	expected = append(expected, "featureDiscovery.apiServer.host", "featureDiscovery.apiServer.port",
		"visibility.image.repository", "visibility.image.tag", "visibility.image.digest",
		"linux.image.repository", "linux.image.tag", "linux.image.digest")
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
