package manifests

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// TestMissingPluginsAreCounted checks that the alert for missing plugins knows the DaemonSets of the plugin by their names, and
// no other one.
func TestMissingPluginsAreCounted(t *testing.T) {
	names := regexp.MustCompile(`desired_number_scheduled\{daemonset=~"(.*?)",daemonset!~"(.*?)"\}`)
	const everything = "metrics: {enabled: true}\nprometheusRule: {enabled: true}\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}\n"
	const pools = "pools: [{name: a, nodeSelector: {pool: a}}, {name: nvidia-a100-80gb-a-long-name, nodeSelector: {pool: b}}]\n"
	for _, values := range []string{
		"", pools, "fullnameOverride: gpu", "fullnameOverride: gpu\n" + pools,
		pools + "nameOverride: a-name-that-is-long-itself", pools + "fullnameOverride: windows-directx-device-plugin",
	} {
		found := mustRender(t, everything+values)
		text, err := json.Marshal(found.custom[0].Object)
		if err != nil {
			t.Fatal(err)
		}
		matchers := names.FindStringSubmatch(strings.ReplaceAll(string(text), `\"`, `"`))
		if matchers == nil {
			t.Fatalf("no rule finds DaemonSets by their names: %s", text)
		}
		is, isNot := regexp.MustCompile("^(?:"+matchers[1]+")$"), regexp.MustCompile("^(?:"+matchers[2]+")$")
		for _, daemonSet := range found.daemonSets {
			if counts := is.MatchString(daemonSet.Name) && !isNot.MatchString(daemonSet.Name); counts != isPlugin(daemonSet) {
				t.Errorf("with %q, the alert counts the pods of %s: %t", values, daemonSet.Name, counts)
			}
		}
	}
}

// TestFallbackPool checks with the scheduler's own code that each node belongs to one pool.
func TestFallbackPool(t *testing.T) {
	const pools = `
pools:
- {name: a, nodeSelector: {pool: a}}
- {name: b, nodeSelector: {pool: b, zone: x}}
- {name: c, nodeSelector: {pool: c, kubernetes.io/os: windows}}
`
	const excluded = "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
		"{matchExpressions: [{key: gpu, operator: Exists}]}, {matchFields: [{key: metadata.name, operator: In, values: [chosen]}]}]}}"
	for _, variant := range []struct{ values, fallback string }{
		{pools + "- {name: others, fallback: true}", "none b-only zone-only gpu chosen"},
		{pools + "- {name: others, fallback: true, nodeSelector: {zone: x}}", "zone-only"},
		{pools + "- {name: others, fallback: true, affinity: {" + excluded + "}}", "gpu chosen"},
		{"affinity: {" + excluded + "}" + pools + "- {name: others, fallback: true}", "gpu chosen"},
	} {
		found := mustRender(t, variant.values+"\nfeatureDiscovery: {enabled: true}\nvisibility: {enabled: true}")
		fallback := []string{}
		for _, node := range []struct {
			name   string
			labels map[string]string
		}{
			{"none", nil},
			{"a", map[string]string{"pool": "a", "gpu": "1"}},
			{"b-only", map[string]string{"pool": "b"}},
			{"zone-only", map[string]string{"zone": "x"}},
			{"b", map[string]string{"pool": "b", "zone": "x", "gpu": "1"}},
			{"c", map[string]string{"pool": "c", "zone": "x", "gpu": "1"}},
			{"gpu", map[string]string{"gpu": "1"}},
			{"chosen", nil},
		} {
			object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.name, Labels: map[string]string{
				"kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64",
			}}}
			for name, value := range node.labels {
				object.Labels[name] = value
			}
			names := []string{}
			for _, daemonSet := range found.daemonSets {
				pod := &corev1.Pod{Spec: daemonSet.Spec.Template.Spec}
				matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(object)
				if err != nil {
					t.Fatal(err)
				}
				if matches {
					names = append(names, daemonSet.Labels["directx-device-plugin/pool"])
				}
			}
			switch strings.Join(names, " ") {
			case "":
			case "others others others":
				fallback = append(fallback, node.name)
			case strings.Repeat(node.name+" ", 2) + node.name:
			default:
				t.Errorf("%s: the node %s runs pods of the pools %q", variant.values, node.name, names)
			}
		}
		mustEqual(t, "nodes of the fallback pool", strings.Join(fallback, " "), variant.fallback)
	}
}

// TestPoolsThatAnAffinityTellsApart checks that such pools are not refused, and that a fallback pool without other pools selects all nodes.
func TestPoolsThatAnAffinityTellsApart(t *testing.T) {
	affinity := func(operator string) string {
		return "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: team, operator: " + operator + "}]}]}}}"
	}
	mustRender(t, "pools:\n- {name: a, nodeSelector: {gpu: t4}, "+affinity("DoesNotExist")+"}\n- {name: b, nodeSelector: {gpu: t4}, "+affinity("Exists")+"}")
	mustRender(t, "pools:\n- {name: a, nodeSelector: {gpu: t4}, "+affinity("DoesNotExist")+"}\n- {name: b, nodeSelector: {gpu: t4, team: dev}}")
	pod := mustRender(t, "pools: [{name: a, fallback: true}]").daemonSets[0].Spec.Template.Spec
	if pod.Affinity != nil {
		t.Errorf("a fallback pool without other pools has the affinity %v", pod.Affinity)
	}
}

// TestValuesOfAPool checks that the values of a pool replace those of the chart.
func TestValuesOfAPool(t *testing.T) {
	found := mustRender(t, `
tolerations: [{key: chart, operator: Exists}]
affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}}]}}
featureDiscovery: {enabled: true}
visibility: {enabled: true}
pools:
- {name: a, nodeSelector: {pool: a}}
- name: b
  nodeSelector: {pool: b}
  tolerations: []
  affinity: {}
  resources: {limits: {cpu: 1, memory: 1Gi}}
`)
	for _, daemonSet := range found.daemonSets {
		pod := daemonSet.Spec.Template.Spec
		isA := daemonSet.Labels["directx-device-plugin/pool"] == "a"
		if (len(pod.Tolerations) == 1) != isA || (pod.Affinity != nil) != isA {
			t.Errorf("%s has the tolerations %v and the affinity %v", daemonSet.Name, pod.Tolerations, pod.Affinity)
		}
		if isPlugin(daemonSet) {
			limit := map[bool]string{true: "256Mi", false: "1Gi"}[isA]
			mustEqual(t, daemonSet.Name, pod.Containers[0].Resources.Limits.Memory().String(), limit)
		}
	}
}
