package manifests

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// advertisement is what a DaemonSet advertises on a recorded host.
type advertisement struct {
	daemonSet, inventory string
	resources            map[string]int64
}

// variant is values of the chart, or a file of deploy, and what they render.
type variant struct {
	name, values string
	// file is a file of deploy, which has its own values.
	file       string
	advertised []advertisement
	// check looks at the objects.
	check func(t *testing.T, found objects)
	// relaxed variants change on purpose what mustBeSafe demands.
	relaxed bool
	// others are ConfigMaps that the chart does not contain.
	others []*corev1.ConfigMap
}

// variants are those that the tests judge.
var variants = []variant{
	{
		name: "directx-device-plugin.yml", file: "directx-device-plugin.yml",
		advertised: []advertisement{
			{"directx-device-plugin", twoT4, map[string]int64{display: 2, compute: 0}},
			{"directx-device-plugin", none, map[string]int64{display: 0, compute: 0}},
		},
	},
	{
		name: "default-daemonsets.yml", file: "default-daemonsets.yml",
		advertised: []advertisement{
			{"device-plugin-wddm", twoT4, map[string]int64{display: 2}},
			{"device-plugin-mcdm", npu, map[string]int64{compute: 1}},
		},
		check: mustReplaceEarlierManifest,
	},
	{
		name: "multitenancy-inline.yml", file: "multitenancy-inline.yml",
		advertised: []advertisement{
			{"device-plugin-wddm", twoT4, map[string]int64{display: 8}},
			{"device-plugin-mcdm", npu, map[string]int64{compute: 4}},
		},
		check: mustReplaceEarlierManifest,
	},
	{
		name: "multitenancy-configmap.yml", file: "multitenancy-configmap.yml",
		advertised: []advertisement{
			{"device-plugin-wddm", twoT4, map[string]int64{display: 8}},
			{"device-plugin-mcdm", npu, map[string]int64{compute: 4}},
		},
		check: mustReplaceEarlierManifest,
	},
	{
		name: "aks.yml", file: "aks.yml",
		advertised: []advertisement{
			{"device-plugin-legacy", twoT4, map[string]int64{"microsoft.com/directx": 2}},
			{"device-plugin-legacy", twoVendors, map[string]int64{"microsoft.com/directx": 1}},
		},
		check: mustHaveEarlierSelectors,
	},
	{
		name: "ack.yml", file: "ack.yml",
		advertised: []advertisement{
			{"device-plugin-legacy", twoT4, map[string]int64{"windows.alibabacloud.com/directx": 512}},
		},
		check: mustHaveEarlierSelectors,
	},
	{name: "feature-discovery.yml", file: "feature-discovery.yml"},
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
			mustEqual(t, "update", found.daemonSets[0].Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(), "10%")
			mustEqual(t, "image", found.daemonSets[0].Spec.Template.Spec.Containers[0].Image,
				"registry.example.com/directx-device-plugin:"+appVersion(t))
		},
	},
	{
		name:   "metrics",
		values: "metrics: {enabled: true, port: 9999}\npodAnnotations: {a: b}",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 2, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			template := found.daemonSets[0].Spec.Template
			container := template.Spec.Containers[0]
			mustEqual(t, "last argument", container.Args[len(container.Args)-1], "--listen=:9999")
			mustEqual(t, "port", strconv.Itoa(int(container.Ports[0].ContainerPort)), "9999")
			mustEqual(t, "scraped port", template.Annotations["prometheus.io/port"], "9999")
			mustEqual(t, "annotation", template.Annotations["a"], "b")
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
		values: "config:\n  map:\n    shared: |\n      multitenancy: 4\n",
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
		name:   "feature discovery of pools",
		values: "featureDiscovery: {enabled: true}\nconfig: {map: {shared: 'multitenancy: 4'}}\npools:\n- {name: a, nodeSelector: {pool: a}}\n- {name: b, nodeSelector: {pool: b}, driverModels: [mcdm]}",
		advertised: []advertisement{
			{"gpus-directx-device-plugin-a", twoT4, map[string]int64{display: 8, compute: 0}},
			{"gpus-directx-device-plugin-b", npu, map[string]int64{compute: 4}},
		},
		check: func(t *testing.T, found objects) {
			names := []string{}
			for _, daemonSet := range found.daemonSets {
				names = append(names, daemonSet.Name)
				for _, other := range found.daemonSets {
					if other != daemonSet && matches(daemonSet.Spec.Selector.MatchLabels, other.Spec.Template.Labels) {
						t.Errorf("the DaemonSet %s selects the pods of %s", daemonSet.Name, other.Name)
					}
				}
			}
			mustEqual(t, "DaemonSets", strings.Join(names, " "), "gpus-directx-device-plugin-a gpus-directx-device-plugin-b "+
				"gpus-directx-device-plugin-discovery-a gpus-directx-device-plugin-discovery-b")
			for i, plugin := range found.daemonSets[:2] {
				discovery := found.daemonSets[i+2]
				mustOnlyAskThePlugin(t, discovery)
				labels := newContainer(t, plugin, found.configMaps).labels(discovery, npu)
				mustEqual(t, "replicas", labels["directx.microsoft.com/replicas"], "4")
			}
		},
	},
	{
		name:   "replicas",
		values: "sharing: {replicas: 4}",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 8, compute: 0}},
		},
	},
	{
		name:   "monitoring",
		values: "metrics: {enabled: true, address: 10.0.0.1}\npodMonitor: {enabled: true, interval: 30s, labels: {release: x}}\nprometheusRule: {enabled: true}\ndashboard: {enabled: true}",
		check: func(t *testing.T, found objects) {
			args := found.daemonSets[0].Spec.Template.Spec.Containers[0].Args
			mustEqual(t, "last argument", args[len(args)-1], "--listen=10.0.0.1:9400")
			monitor, rule, dashboard := found.custom[0], found.custom[1], found.configMaps[0]
			selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
			if !matches(selector, found.daemonSets[0].Spec.Template.Labels) {
				t.Errorf("the PodMonitor selects %v", selector)
			}
			mustEqual(t, "label of the PodMonitor", monitor.GetLabels()["release"], "x")
			groups, _, _ := unstructured.NestedSlice(rule.Object, "spec", "groups")
			rules := groups[0].(map[string]any)["rules"].([]any)
			names := []string{}
			for _, rule := range rules {
				names = append(names, rule.(map[string]any)["alert"].(string))
			}
			mustEqual(t, "alerts", strings.Join(names, " "), "DirectXDeviceUnhealthy DirectXResourceNotReady DirectXConfigurationRejected "+
				"DirectXDriverOutdated DirectXDeviceReset DirectXDeviceUnlicensed DirectXPluginMissing DirectXFeatureDiscoveryStuck")
			page := read(t, "docs/metrics.md")
			for _, rule := range rules {
				rule := rule.(map[string]any)
				mustBeMetrics(t, rule["expr"].(string))
				name, annotations := rule["alert"].(string), rule["annotations"].(map[string]any)
				if !strings.Contains(page, "\n### `"+name+"`\n") {
					t.Errorf("docs/metrics.md does not describe %s", name)
				}
				mustEqual(t, "runbook", annotations["runbook_url"].(string), "https://github.com/OWNER/REPOSITORY/blob/main/docs/metrics.md#"+strings.ToLower(name))
				if description, _ := annotations["description"].(string); len(description) < 50 || description == annotations["summary"] {
					t.Errorf("the description of %s is %q", name, description)
				}
			}
			for _, rule := range regexp.MustCompile("(?m)^ *expr: (.*)$").FindAllStringSubmatch(read(t, "docs/nvidia.md"), -1) {
				mustBeMetrics(t, rule[1])
			}
			mustEqual(t, "label of the dashboard", dashboard.Labels["grafana_dashboard"], "1")
			mustEqual(t, "dashboard", strings.TrimSpace(dashboard.Data["directx-devices.json"]), strings.TrimSpace(read(t, chart+"/directx-devices.json")))
		},
	},
	{
		name:   "the address of each node",
		values: "metrics: {enabled: true, address: $(NODE_IP)}\nfeatureDiscovery: {enabled: true}",
		check: func(t *testing.T, found objects) {
			for _, daemonSet := range found.daemonSets {
				container := daemonSet.Spec.Template.Spec.Containers[0]
				port := strconv.Itoa(int(container.Ports[0].ContainerPort))
				mustEqual(t, "last argument", container.Args[len(container.Args)-1], "--listen=[$(NODE_IP)]:"+port)
				if !slices.ContainsFunc(container.Env, func(variable corev1.EnvVar) bool {
					return variable.Name == "NODE_IP" && variable.ValueFrom.FieldRef.FieldPath == "status.hostIP"
				}) {
					t.Errorf("%s has the variables %v", daemonSet.Name, container.Env)
				}
			}
		},
	},
	{
		name: "Services and relabelings",
		values: `
metrics: {enabled: true}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: x}, relabelings: [{sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: node}]}
featureDiscovery: {enabled: true}
visibility: {enabled: true}
`,
		check: func(t *testing.T, found objects) {
			monitor := found.custom[0]
			mustEqual(t, "kind", monitor.GetKind()+" "+monitor.GetLabels()["release"], "ServiceMonitor x")
			spec := fmt.Sprint(monitor.Object["spec"])
			for _, part := range []string{"honorLabels:true interval:30s port:metrics", "targetLabel:node"} {
				if !strings.Contains(spec, part) {
					t.Errorf("the ServiceMonitor does not contain %s: %s", part, spec)
				}
			}
			for _, daemonSet := range found.daemonSets {
				pod, selected := daemonSet.Spec.Template, []string{}
				for _, service := range found.services {
					if matches(service.Spec.Selector, pod.Labels) {
						selected = append(selected, service.Name)
						mustEqual(t, "port", service.Spec.Ports[0].TargetPort.StrVal, pod.Spec.Containers[0].Ports[0].Name)
						if name := service.Labels["app.kubernetes.io/name"]; !strings.Contains(spec, name) {
							t.Errorf("the ServiceMonitor does not select %s: %s", name, spec)
						}
					}
				}
				expected := daemonSet.Name
				if isVisible(daemonSet) {
					expected = ""
				}
				mustEqual(t, "Services of "+daemonSet.Name, strings.Join(selected, " "), expected)
			}
		},
	},
	{
		name:   "annotations beside a PodMonitor",
		values: "metrics: {enabled: true}\npodMonitor: {enabled: true}\nfeatureDiscovery: {enabled: true}\npodAnnotations: {a: b, prometheus.io/scrape: 'false'}",
		check:  mustHaveOnlyAnnotationsOfUsers,
	},
	{
		name:   "annotations beside a ServiceMonitor",
		values: "metrics: {enabled: true}\nserviceMonitor: {enabled: true}\nfeatureDiscovery: {enabled: true}\npodAnnotations: {a: b, prometheus.io/scrape: 'false'}",
		check:  mustHaveOnlyAnnotationsOfUsers,
	},
	{
		name:   "annotations with a loopback address",
		values: "metrics: {enabled: true, address: 127.0.0.1}\nfeatureDiscovery: {enabled: true}\npodAnnotations: {a: b, prometheus.io/scrape: 'false'}",
		check:  mustHaveOnlyAnnotationsOfUsers,
	},
	{
		name:   "relabelings of the PodMonitor",
		values: "metrics: {enabled: true}\npodMonitor: {enabled: true, relabelings: [{targetLabel: node}]}",
		check: func(t *testing.T, found objects) {
			if spec := fmt.Sprint(found.custom[0].Object["spec"]); !strings.Contains(spec, "relabelings:[map[targetLabel:node]]") {
				t.Errorf("the PodMonitor is %s", spec)
			}
		},
	},
	{
		name:   "the Pod Security level of the namespace",
		values: "psa: {enabled: true}",
		check: func(t *testing.T, found objects) {
			namespace := found.namespaces[0]
			mustEqual(t, "namespace", namespace.Name, found.daemonSets[0].Namespace)
			mustEqual(t, "level", namespace.Labels["pod-security.kubernetes.io/enforce"], "privileged")
			mustEqual(t, "policy", namespace.Annotations["helm.sh/resource-policy"], "keep")
		},
	},
	{
		name:   "a startup taint of the autoscaler",
		values: "featureDiscovery: {enabled: true, startupTaint: startup-taint.cluster-autoscaler.kubernetes.io/gpu}",
	},
	{
		name: "keys without values",
		values: "nodeSelector:\ntolerations:\naffinity:\npodAnnotations:\npodLabels:\nenv:\nmetrics: {enabled: true}\nfeatureDiscovery: {enabled: true, cleanup: true}\n" +
			"podMonitor: {enabled: true, labels: }\nprometheusRule: {enabled: true, labels: }\ndashboard: {enabled: true, labels: }\nvisibility: {enabled: true}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "nodes", fmt.Sprint(found.daemonSets[0].Spec.Template.Spec.NodeSelector), "map[kubernetes.io/arch:amd64 kubernetes.io/os:windows]")
			mustEqual(t, "label of the dashboard", found.configMaps[0].Labels["grafana_dashboard"], "1")
		},
	},
	{
		name: "another directory of the kubelet",
		values: "devicePluginDir: 'D:\\kubelet\\device-plugins'\nfeatureDiscovery: {enabled: true}\n" +
			"driverModels: [legacy]",
		check: func(t *testing.T, found objects) {
			for _, daemonSet := range found.daemonSets {
				container := daemonSet.Spec.Template.Spec.Containers[0]
				commands := [][]string{container.Args}
				if isPlugin(daemonSet) {
					commands = append(commands, container.ReadinessProbe.Exec.Command, container.LivenessProbe.Exec.Command)
				}
				for _, command := range commands {
					if !slices.Contains(command, `--device-plugin-dir=D:\kubelet\device-plugins`) {
						t.Errorf("%s runs %q", daemonSet.Name, command)
					}
				}
				if isDiscovery(daemonSet) {
					help, err := exec.Command(discovery, append(container.Args, "--help")...).CombinedOutput()
					if err != nil {
						t.Errorf("the program does not accept %q: %v\n%s", container.Args, err, help)
					}
				}
			}
			for _, test := range found.tests {
				if !slices.Contains(test.Spec.Containers[0].Args, `--device-plugin-dir=D:\kubelet\device-plugins`) {
					t.Errorf("%s runs %q", test.Name, test.Spec.Containers[0].Args)
				}
			}
		},
	},
	{
		name:   "the pace of updates",
		values: "updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "DaemonSets", strconv.Itoa(len(found.daemonSets)), "3")
			for _, daemonSet := range found.daemonSets {
				mustEqual(t, daemonSet.Name, daemonSet.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(), "50%")
			}
		},
	},
	{
		name:   "updates by hand",
		values: "updateStrategy: {type: OnDelete}\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}",
		check: func(t *testing.T, found objects) {
			for _, daemonSet := range found.daemonSets {
				mustEqual(t, daemonSet.Name, string(daemonSet.Spec.UpdateStrategy.Type), string(appsv1.OnDeleteDaemonSetStrategyType))
			}
		},
	},
	{
		name:   "the number of nodes of an update",
		values: "updateStrategy: {rollingUpdate: {maxUnavailable: 3}}",
		check: func(t *testing.T, found objects) {
			mustEqual(t, "update", found.daemonSets[0].Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(), "3")
		},
	},
	{
		name:   "revisions",
		values: "revisionHistoryLimit: 3\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}",
		check: func(t *testing.T, found objects) {
			for _, daemonSet := range found.daemonSets {
				mustEqual(t, daemonSet.Name, strconv.Itoa(int(*daemonSet.Spec.RevisionHistoryLimit)), "3")
			}
		},
	},
	{
		name:   "an account and an API server of the administrator",
		values: "featureDiscovery: {enabled: true, apiServer: {host: 10.0.0.1, port: 6443}}\nserviceAccount: {create: false, name: mine}\nrbac: {create: false}",
		check: func(t *testing.T, found objects) {
			if account := found.account; len(account.accounts)+len(account.clusterRoles)+len(account.roles)+len(account.policies)+len(account.bindings) != 0 {
				t.Errorf("the chart creates %+v", account)
			}
			pod := discoveryOf(found).Spec.Template.Spec
			mustEqual(t, "account", pod.ServiceAccountName, "mine")
			variables := map[string]string{}
			for _, variable := range pod.Containers[0].Env {
				variables[variable.Name] = variable.Value
			}
			mustEqual(t, "address", variables["KUBERNETES_SERVICE_HOST"]+":"+variables["KUBERNETES_SERVICE_PORT"], "10.0.0.1:6443")
		},
	},
	{
		name: "variables and arguments of the plugin",
		values: "featureDiscovery: {enabled: true}\nextraArgs: [--pod-resources=x]\nlogFormat: json\nlogLevel: debug\n" +
			"env: [{name: WDDM_DEVICE_PLUGIN_MULTITENANCY, value: '4'}]",
		check: func(t *testing.T, found objects) {
			args := found.daemonSets[0].Spec.Template.Spec.Containers[0].Args
			mustEqual(t, "last argument", args[len(args)-1], "--pod-resources=x")
			for _, daemonSet := range found.daemonSets[1:] {
				mustOnlyAskThePlugin(t, daemonSet)
				mustEqual(t, "arguments", strings.Join(daemonSet.Spec.Template.Spec.Containers[0].Args, " "),
					"--log-format=json --log-level=debug --listen=127.0.0.1:9401")
			}
		},
	},
	{
		name:   "annotations and variables that replace those of the chart",
		values: "metrics: {enabled: true}\npodAnnotations: {prometheus.io/port: '1'}\nenv: [{name: NODE_NAME, value: x}]",
		check: func(t *testing.T, found objects) {
			template := found.daemonSets[0].Spec.Template
			mustEqual(t, "scraped port", template.Annotations["prometheus.io/port"], "1")
			variables := template.Spec.Containers[0].Env
			if len(variables) != 2 || variables[1].Value != "x" {
				t.Errorf("the variables are %v", variables)
			}
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
		name:   "a ConfigMap with another name",
		values: "config: {name: shared-gpus, map: {a: 'multitenancy: 3'}}",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", twoT4, map[string]int64{display: 6, compute: 0}},
		},
		check: func(t *testing.T, found objects) { mustEqual(t, "ConfigMap", found.configMaps[0].Name, "shared-gpus") },
	},
	{
		name: "a demonstration",
		values: "demonstration: {enabled: true, gpus: [T4, l4], image: {repository: example.com/linux, tag: test}}\n" +
			"nodeSelector: {zone: a}\nmetrics: {enabled: true}\nfeatureDiscovery: {enabled: true, gfdLabels: true}\n" +
			"config: {map: {shared: 'multitenancy: 4'}}\ndevicePluginDir: /var/lib/k0s/kubelet/device-plugins",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", own, map[string]int64{display: 8, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			plugin, discovery := found.daemonSets[0], discoveryOf(found)
			for daemonSet, folders := range map[*appsv1.DaemonSet]string{
				plugin:    "/var/lib/k0s/kubelet/device-plugins /var/lib/k0s/kubelet/pod-resources",
				discovery: "/var/lib/k0s/kubelet/device-plugins",
			} {
				pod := daemonSet.Spec.Template.Spec
				mustEqual(t, "folders", paths(pod), folders)
				mustEqual(t, "folder in the container", pod.Containers[0].VolumeMounts[0].MountPath, "/var/lib/kubelet/device-plugins")
				mustEqual(t, "image", pod.Containers[0].Image, "example.com/linux:test")
				mustEqual(t, "nodes", fmt.Sprint(pod.NodeSelector),
					"map[directx.microsoft.com/demonstration:true kubernetes.io/arch:amd64 kubernetes.io/os:linux zone:a]")
			}
			mustEqual(t, "arguments", strings.Join(plugin.Spec.Template.Spec.Containers[0].Args, " "),
				"serve --driver-model=wddm --driver-model=mcdm --demonstration --inventory=/etc/directx-inventory/inventory.yaml "+
					"--config=/etc/directx-device-plugins/config.yaml --log-format=text --log-level=info --listen=:9400")
			mustOnlyAskThePlugin(t, discovery)
			labels := newContainer(t, plugin, found.configMaps).labels(discovery, own)
			mustEqual(t, "count", labels["directx.microsoft.com/count"], "2")
			mustEqual(t, "product", labels["nvidia.com/gpu.product"], "NVIDIA-L4-SHARED")
		},
	},
	{
		name:   "a demonstration with an inventory",
		values: "demonstration: {enabled: true, inventory: \"schema: directx-inventory/v1\\nadapters: []\\n\", image: {repository: plugin}}\ndriverModels: [mcdm]",
		advertised: []advertisement{
			{"gpus-directx-device-plugin", own, map[string]int64{compute: 0}},
		},
	},
	{
		name: "the selector of an earlier DaemonSet",
		values: "selectorLabels: {app: earlier}\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}\n" +
			"pools: [{name: a, nodeSelector: {pool: a}}, {name: b, nodeSelector: {pool: b}}]",
		check: func(t *testing.T, found objects) {
			for _, daemonSet := range found.daemonSets {
				_, isEarlier := daemonSet.Spec.Selector.MatchLabels["app"]
				mustEqual(t, daemonSet.Name, strconv.FormatBool(isEarlier), strconv.FormatBool(isPlugin(daemonSet)))
				for _, other := range found.daemonSets {
					if other != daemonSet && matches(daemonSet.Spec.Selector.MatchLabels, other.Spec.Template.Labels) {
						t.Errorf("the DaemonSet %s selects the pods of %s", daemonSet.Name, other.Name)
					}
				}
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
		name:   "timings of the probes",
		values: "startupProbe: {failureThreshold: 90}\nreadinessProbe: {periodSeconds: 30}\nlivenessProbe: {timeoutSeconds: 30}",
		check: func(t *testing.T, found objects) {
			container := found.daemonSets[0].Spec.Template.Spec.Containers[0]
			for _, probe := range []struct {
				name, expected string
				found          *corev1.Probe
			}{
				{"startup", "10 10 90", container.StartupProbe}, {"readiness", "30 10 2", container.ReadinessProbe}, {"liveness", "100 30 3", container.LivenessProbe},
			} {
				mustEqual(t, probe.name, fmt.Sprint(probe.found.PeriodSeconds, probe.found.TimeoutSeconds, probe.found.FailureThreshold), probe.expected)
			}
		},
	},
	{
		name: "quantities",
		values: "resources: {requests: {cpu: 1, memory: 1e8}, limits: {cpu: 1.5, memory: 1.5Gi}}\n" +
			"featureDiscovery: {enabled: true, resources: {limits: {cpu: null, memory: 128M}}}\n" +
			"pools: [{name: a, nodeSelector: {pool: a}, resources: {requests: {cpu: 100m, memory: '1'}, limits: {cpu: '2', memory: null}}}, {name: b, nodeSelector: {pool: b}}]",
		relaxed: true,
		check: func(t *testing.T, found objects) {
			for i, expected := range []string{"100m 1 2 0", "1 100M 1500m 1536Mi", "10m 32Mi 0 128M", "10m 32Mi 0 128M"} {
				resources := found.daemonSets[i].Spec.Template.Spec.Containers[0].Resources
				mustEqual(t, found.daemonSets[i].Name, strings.Join([]string{resources.Requests.Cpu().String(), resources.Requests.Memory().String(),
					resources.Limits.Cpu().String(), resources.Limits.Memory().String()}, " "), expected)
			}
		},
	},
	{
		name: "keys without values in a list",
		values: "nodeSelector: {zone: a}\ntolerations: [{key: , operator: Exists, effect: }]\naffinity: {podAntiAffinity: }\n" +
			"pools: [{name: a, nodeSelector: {pool: a}, config: , driverModels: , fallback: , affinity: , tolerations: , resources: }]",
		advertised: []advertisement{
			{"gpus-directx-device-plugin-a", twoT4, map[string]int64{display: 2, compute: 0}},
		},
		check: func(t *testing.T, found objects) {
			mustEqual(t, "tolerations", fmt.Sprint(found.daemonSets[0].Spec.Template.Spec.Tolerations), "[{ Exists   <nil>}]")
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

// mustHaveEarlierSelectors fails unless a DaemonSet selects its pods as the one of the same name of an earlier plugin, which the
// manifest is applied to: the API server accepts no other selector.
func mustHaveEarlierSelectors(t *testing.T, found objects) {
	t.Helper()
	for _, daemonSet := range found.daemonSets {
		mustEqual(t, "selector", fmt.Sprint(daemonSet.Spec.Selector.MatchLabels), "map[app:"+daemonSet.Name+"]")
		mustEqual(t, "container", daemonSet.Spec.Template.Spec.Containers[0].Name, daemonSet.Name)
	}
}

// mustReplaceEarlierManifest fails unless a pod with several compute-only devices starts, with one of them: kubelets made this
// of the answer of the earlier plugin.
func mustReplaceEarlierManifest(t *testing.T, found objects) {
	t.Helper()
	mustHaveEarlierSelectors(t, found)
	for _, daemonSet := range found.daemonSets {
		if daemonSet.Name != "device-plugin-mcdm" {
			continue
		}
		// It fails if the pod is refused.
		predicted := newContainer(t, daemonSet, found.configMaps).simulate(eightH100, "--pod", "several="+compute+":8")
		mustEqual(t, "device entries", fmt.Sprint(len(predicted.Pods[0].Container.Devices)), "1")
		return
	}
	t.Error("there is no device-plugin-mcdm")
}

// mustHaveOnlyAnnotationsOfUsers fails if Prometheus also finds pods by annotations of the chart.
func mustHaveOnlyAnnotationsOfUsers(t *testing.T, found objects) {
	t.Helper()
	for _, daemonSet := range found.daemonSets {
		mustEqual(t, "annotations of "+daemonSet.Name, fmt.Sprint(daemonSet.Spec.Template.Annotations), "map[a:b prometheus.io/scrape:false]")
	}
}

// mustBeMetrics parses an expression as Prometheus does, and fails unless the plugin has its metrics.
func mustBeMetrics(t *testing.T, text string) {
	t.Helper()
	expression, err := parser.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	pages := read(t, "docs/reference/metrics.md") + read(t, "docs/labels.md")
	for _, selector := range parser.ExtractSelectors(expression) {
		// Prometheus itself adds `up`, and kube-state-metrics has metrics of DaemonSets.
		name := selector[len(selector)-1].Value
		if name != "up" && name != "kube_daemonset_status_desired_number_scheduled" && !strings.Contains(pages, "| `"+name+"` |") {
			t.Errorf("%s is no metric: %s", name, text)
		}
	}
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
