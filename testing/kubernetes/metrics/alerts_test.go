package metrics

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// alertFile is the rule file of the chart.
const alertFile = "../../../deploy/charts/directx-device-plugin/alerts.yaml"

// start is the time of the first sample.
var start = time.Unix(1_800_000_000, 0)

// stuck is the beginning of a summary.
const stuck = "The feature discovery on n:9401 no longer does its work"

// discovery are the numbers of requests for a purpose that succeed and fail.
func discovery(purpose, successes, failures string) []string {
	requests := `directx_feature_discovery_requests_total{instance="n:9401",purpose="` + purpose + `",result="`
	return []string{requests + `success"} ` + successes, requests + `failure"} ` + failures}
}

// firstDevice are the labels of a device.
const firstDevice = `instance="n:9400",Hostname="n",device="PCI\\1"`

// Prometheus accepts the alerts, as `promtool check rules` does, and they fire when docs/metrics.md says so.
func TestAlerts(t *testing.T) {
	groups, faults := rulefmt.ParseFile(alertFile)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	const first, second, lost = firstDevice, `instance="n:9400",Hostname="n",device="PCI\\2"`, `instance="n:9400",Hostname="n"`
	removed := []string{
		`directx_device_info{` + first + `} 1x14 stale`, `directx_device_info{` + second + `} 1x1600`, `directx_device_plugin_build_info{` + lost + `} 1x1600`,
		`directx_device_healthy{` + second + `} 1x1600`, `directx_device_healthy{` + first + `} 1x4 stale`,
		`directx_device_healthy{` + first + `,reason="the host no longer reports the device"} _x5 0x9 stale`,
	}
	for _, example := range []struct {
		name, alert string
		// series have a sample each minute, in the notation of promtool.
		series []string
		after  time.Duration
		// expected are the summaries of the alerts that fire.
		expected string
	}{
		{"an unhealthy device", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `,reason="code 43"} 0x10`, `directx_device_healthy{` + second + `} 1x10`},
			6 * time.Minute, `PCI\1 on n is unhealthy: code 43`},
		{"an unhealthy device for a short time", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `} 1 1 1 1 stale`, `directx_device_healthy{` + first + `,reason="code 43"} _x4 0x6`},
			8 * time.Minute, ""},
		{"an unhealthy device whose pod ends", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `,pod="a",reason="code 43"} 0 0 0 stale`, `directx_device_healthy{` + first + `,reason="code 10"} _x2 0x7`},
			6 * time.Minute, `PCI\1 on n is unhealthy: code 10`},
		{"a device that is taken out of service", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `} 1 1 stale`, `directx_device_healthy{` + first + `,reason="cordoned: taken out of service by the node's annotation"} _x2 0x10`},
			10 * time.Minute, ""},
		{"an unhealthy device beside one that is out of service", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `,reason="cordoned: taken out of service by cordonedDevices of the configuration"} 0x10`,
			`directx_device_healthy{` + second + `,reason="code 43"} 0x10`},
			6 * time.Minute, `PCI\2 on n is unhealthy: code 43`},
		{"a device that returns to service unhealthy", "DirectXDeviceUnhealthy", []string{
			`directx_device_healthy{` + first + `,reason="cordoned: taken out of service by the node's annotation"} 0x4 stale`,
			`directx_device_healthy{` + first + `,reason="code 43"} _x5 0x10`},
			12 * time.Minute, `PCI\1 on n is unhealthy: code 43`},
		{"a device that disappears", "DirectXDeviceUnhealthy", removed, 12 * time.Minute, `PCI\1 on n is unhealthy: the host no longer reports the device`},
		// It is dropped ten minutes after it disappeared. The alert goes on.
		{"a device that is dropped", "DirectXDeviceUnhealthy", removed, 16 * time.Minute, `PCI\1 on n is no longer listed. It was in the last day`},
		{"a device that was dropped an hour ago", "DirectXDeviceUnhealthy", removed, 80 * time.Minute, `PCI\1 on n is no longer listed. It was in the last day`},
		{"a device that was dropped more than a day ago", "DirectXDeviceUnhealthy", removed, 25 * time.Hour, ""},
		{"a device that returns with another pod", "DirectXDeviceUnhealthy", []string{
			`directx_device_info{` + first + `,pod="a"} 1x4 stale`, `directx_device_info{` + first + `,pod="b"} _x6 1x20`, `directx_device_plugin_build_info{` + lost + `} 1x20`},
			14 * time.Minute, ""},
		{"a node that leaves", "DirectXDeviceUnhealthy", []string{
			`directx_device_info{` + first + `} 1x4 stale`, `directx_device_plugin_build_info{` + lost + `} 1x4 stale`},
			14 * time.Minute, ""},
		{"a resource without device list", "DirectXResourceNotReady", []string{`directx_device_plugin_resource_ready{instance="n:9400",resource="a.b/c"} 0x20`},
			15 * time.Minute, "The kubelet on n:9400 does not have the current device list of a.b/c"},
		{"a driver that is replaced while a pod holds its device", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`, `pod="a"`) + ` 1x9 stale`, driver(`1.0.0.2`, `pod="a"`) + ` _x10 1x90`, held(`a`) + ` 1x100`},
			90 * time.Minute, `x/a holds PCI\1 on n, whose driver was replaced; delete the pod`},
		{"a driver that is replaced while two pods share its device", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`) + ` 1x9 stale`, driver(`1.0.0.2`) + ` _x10 1x90`, held(`a`) + ` 1x100`, held(`b`) + ` 1x100`},
			90 * time.Minute, `x/a holds PCI\1 on n, whose driver was replaced; delete the pod; x/b holds PCI\1 on n, whose driver was replaced; delete the pod`},
		{"a driver that is replaced without pods", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`) + ` 1x9 stale`, driver(`1.0.0.2`) + ` _x10 1x9 stale`, driver(`1.0.0.2`, `pod="a"`) + ` _x20 1x80`, held(`a`) + ` _x20 1x80`},
			90 * time.Minute, ""},
		{"a driver that is replaced while a device has no version", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`) + ` 1x9 stale`, driver(``) + ` _x10 1x19 stale`, driver(`1.0.0.1`) + ` _x30 1x70`, held(`a`) + ` 1x100`},
			90 * time.Minute, ""},
		{"a pod that is deleted after its driver was replaced", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`, `pod="a"`) + ` 1x9 stale`, driver(`1.0.0.2`, `pod="a"`) + ` _x10 1x69 stale`, driver(`1.0.0.2`, `pod="b"`) + ` _x80 1x20`,
			held(`a`) + ` 1x79 stale`, held(`b`) + ` _x80 1x20`},
			90 * time.Minute, ""},
		{"a pod that has held a device for more than a day since its driver was replaced", "DirectXDriverOutdated", []string{
			driver(`1.0.0.1`, `pod="a"`) + ` 1x9 stale`, driver(`1.0.0.2`, `pod="a"`) + ` _x10 1x1500`, held(`a`) + ` 1x1510`},
			25 * time.Hour, ""},
		{"a reset", "DirectXDeviceReset", []string{`directx_device_resets_total{` + first + `} 0x9 1x40`},
			12 * time.Minute, `The driver of PCI\1 on n stopped responding and was reset`},
		{"a reset that ends the pod", "DirectXDeviceReset", []string{
			`directx_device_resets_total{` + first + `,pod="a"} 0x9 stale`, `directx_device_resets_total{` + first + `,pod="b"} _x10 1x40`},
			12 * time.Minute, `The driver of PCI\1 on n stopped responding and was reset`},
		{"a reset an hour ago", "DirectXDeviceReset", []string{`directx_device_resets_total{` + first + `} 0x9 1x90`}, 70 * time.Minute, ""},
		{"resets before the plugin started", "DirectXDeviceReset", []string{`directx_device_resets_total{` + first + `} _x5 3x40`}, 12 * time.Minute, ""},
		{"a driver that is started again and a pod that ends", "DirectXDeviceReset", []string{
			`directx_device_resets_total{` + first + `,pod="a"} 3x9 stale`, `directx_device_resets_total{` + first + `} _x10 0x40`},
			12 * time.Minute, ""},
		{"a device without a license", "DirectXDeviceUnlicensed", []string{
			`directx_device_license_state{` + first + `} 0x20`, `directx_device_license_state{` + second + `} 1x20`},
			16 * time.Minute, `NVIDIA's driver has no license for PCI\1 on n`},
		{"a device that gets its license after some minutes", "DirectXDeviceUnlicensed", []string{
			`directx_device_license_state{` + first + `} 0x11 1x10`}, 20 * time.Minute, ""},
		{"a device without a license whose pod ends", "DirectXDeviceUnlicensed", []string{
			`directx_device_license_state{` + first + `,pod="a"} 0x5 stale`, `directx_device_license_state{` + first + `} _x6 0x15`},
			16 * time.Minute, `NVIDIA's driver has no license for PCI\1 on n`},
		{"a device without a license whose plugin starts again", "DirectXDeviceUnlicensed", []string{
			`directx_device_license_state{` + first + `,pod="a"} 0x12 stale`, `directx_device_license_state{` + first + `,pod="b"} _x16 0x10`},
			20 * time.Minute, `NVIDIA's driver has no license for PCI\1 on n`},
		{"a device whose license has expired while nothing is known", "DirectXDeviceUnlicensed", []string{
			`directx_device_license_state{` + first + `} 1x30`,
			`directx_device_license_expiration_timestamp_seconds{` + first + `} 1800000300x30`,
			`directx_device_license_expiration_timestamp_seconds{` + second + `} 1800003600x30`},
			22 * time.Minute, `NVIDIA's driver has no license for PCI\1 on n`},
		{"a feature discovery at rest", "DirectXFeatureDiscoveryStuck", discovery("watch", "1x60", "0x60"), 55 * time.Minute, ""},
		// The kubelet reports at least every five minutes, so the watch has an event.
		{"a feature discovery whose last change is old", "DirectXFeatureDiscoveryStuck", append(discovery("watch", "1+1x60", "0x60"),
			`directx_feature_discovery_last_success_timestamp_seconds{instance="n:9401",purpose="condition"} 1800000000x60`,
			`directx_feature_discovery_last_success_timestamp_seconds{instance="n:9401",purpose="watch"} 1800000000+60x60`),
			55 * time.Minute, ""},
		{"a feature discovery whose watch is silent", "DirectXFeatureDiscoveryStuck", append(discovery("watch", "5x60", "0x60"),
			`directx_feature_discovery_last_success_timestamp_seconds{instance="n:9401",purpose="watch"} 1800000000x60`),
			27 * time.Minute, stuck + ": watch fails"},
		{"a feature discovery whose watch fails", "DirectXFeatureDiscoveryStuck", discovery("watch", "5x60", "0x20 1+1x40"), 55 * time.Minute, stuck + ": watch fails"},
		{"a feature discovery that never had a node", "DirectXFeatureDiscoveryStuck", discovery("watch", "0x60", "0+1x60"), 15 * time.Minute, stuck + ": watch fails"},
		{"a feature discovery whose labels are refused", "DirectXFeatureDiscoveryStuck", append(discovery("labels", "1x60", "0x20 1+1x40"), discovery("watch", "1+1x60", "0x60")...),
			55 * time.Minute, stuck + ": labels fails"},
		{"a feature discovery that cannot hand over cordons", "DirectXFeatureDiscoveryStuck", append(discovery("cordons", "0x60", "0x20 1+1x40"), discovery("watch", "1+1x60", "0x60")...),
			55 * time.Minute, stuck + ": cordons fails"},
		{"a feature discovery whose request succeeds at the second try", "DirectXFeatureDiscoveryStuck", append(discovery("labels", "1x20 2x40", "0x20 1x40"), discovery("watch", "1+1x60", "0x60")...),
			35 * time.Minute, ""},
		{"a feature discovery that does not respond", "DirectXFeatureDiscoveryStuck", []string{
			`directx_feature_discovery_requests_total{instance="n:9401",purpose="watch",result="success"} 1+1x4 stale`, `up{instance="n:9401"} 1x4 0x20`},
			18 * time.Minute, stuck},
		{"a plugin that does not respond", "DirectXPluginMissing", []string{
			`directx_device_plugin_build_info{instance="n:9400"} 1x4 stale`, `directx_device_plugin_build_info{instance="m:9400"} 1x20`,
			`up{instance="n:9400"} 1x4 0x15`, `up{instance="m:9400"} 1x20`},
			18 * time.Minute, without + "n:9400"},
		{"a node that leaves", "DirectXPluginMissing", []string{plugin("n", 5), target("n", 5), plugin("m", 40), target("m", 40)}, 30 * time.Minute, ""},
		{"the last node leaves", "DirectXPluginMissing", []string{plugin("n", 30), target("n", 30), node("a", 200)}, 60 * time.Minute, ""},
		{"the last node leaves, with kube-state-metrics", "DirectXPluginMissing", []string{
			plugin("n", 30), target("n", 30), desired("directx-device-plugin", "1x29 0x40")}, 60 * time.Minute, ""},
		{"no node for the plugin", "DirectXPluginMissing", []string{node("a", 60)}, 30 * time.Minute, ""},
		{"no node for the plugin, with kube-state-metrics", "DirectXPluginMissing", []string{
			desired("directx-device-plugin", "0x60"), desired("windows-exporter", "3x60")}, 30 * time.Minute, ""},
		{"a target that remains after its node", "DirectXPluginMissing", []string{plugin("n", 5), `up{job="static",instance="n:9400"} 1x4 0x2000`},
			30 * time.Hour, ""},
		{"a plugin without kube-state-metrics", "DirectXPluginMissing", []string{plugin("n", 5), `up{job="p",instance="n:9400"} 1x4 0x40`, plugin("m", 40), target("m", 40)},
			30 * time.Minute, without + "n:9400"},
		{"a plugin that never had metrics", "DirectXPluginMissing", []string{
			plugin("n", 40), target("n", 40), `up{job="p",instance="m:9400"} 0x40`, desired("directx-device-plugin", "2x40")},
			30 * time.Minute, without + "1 of its nodes"},
		{"a plugin that never had metrics and one that does not respond", "DirectXPluginMissing", []string{
			plugin("n", 5), `up{job="p",instance="n:9400"} 1x4 0x40`, desired("directx-device-plugin", "2x40")},
			30 * time.Minute, without + "1 of its nodes; " + without + "n:9400"},
		{"no plugin has metrics", "DirectXPluginMissing", []string{
			desired("team-gpus-directx-device-plugin-a", "2x40"), desired("gpus-directx-device-plugin-linux", "1x40")},
			30 * time.Minute, without + "3 of its nodes"},
		{"the other DaemonSets of the chart", "DirectXPluginMissing", []string{
			plugin("n", 40), target("n", 40), desired("directx-device-plugin", "1x40"), desired("directx-device-plugin-discovery", "1x40"),
			desired("directx-device-plugin-discovery-linux", "1x40"), desired("directx-device-plugin-visible-a", "1x40"),
			desired("directx-device-plugin-dis-a-very-long-name-of-a-pool", "1x40"), desired("directx-feature-discovery", "1x40"), desired("directx-visible", "1x40")},
			30 * time.Minute, ""},
		{"two plugins on a node", "DirectXPluginMissing", []string{
			plugin("n", 40), target("n", 40), `directx_device_plugin_build_info{job="other",instance="n:9400"} 1x40`, desired("directx-device-plugin", "2x40")},
			30 * time.Minute, without + "1 of its nodes"},
		{"nodes that join one after the other, each without metrics for four minutes", "DirectXPluginMissing", []string{
			plugin("n", 60), target("n", 60), `directx_device_plugin_build_info{job="p",instance="m:9400"} _x14 1x46`, `directx_device_plugin_build_info{job="p",instance="l:9400"} _x17 1x43`,
			`directx_device_plugin_build_info{job="p",instance="k:9400"} _x20 1x40`, `directx_device_plugin_build_info{job="p",instance="j:9400"} _x23 1x37`,
			desired("directx-device-plugin", "1x9 2x2 3x2 4x2 5x40")},
			22 * time.Minute, ""},
		{"a plugin that is uninstalled", "DirectXPluginMissing", []string{
			plugin("n", 20), target("n", 20), desired("windows-exporter", "3x60"), `kube_daemonset_status_desired_number_scheduled{namespace="gpu",daemonset="directx-device-plugin"} 1x19 stale`},
			30 * time.Minute, ""},
		{"two instances of kube-state-metrics", "DirectXPluginMissing", []string{plugin("n", 60), target("n", 60),
			`kube_daemonset_status_desired_number_scheduled{namespace="gpu",daemonset="directx-device-plugin",instance="a"} 1x60`,
			`kube_daemonset_status_desired_number_scheduled{namespace="gpu",daemonset="directx-device-plugin",instance="b"} 1x60`},
			30 * time.Minute, ""},
		{"two namespaces", "DirectXPluginMissing", []string{plugin("n", 60), target("n", 60),
			`kube_daemonset_status_desired_number_scheduled{namespace="gpu",daemonset="directx-device-plugin"} 1x40`,
			`kube_daemonset_status_desired_number_scheduled{namespace="other",daemonset="directx-device-plugin"} 1x40`},
			30 * time.Minute, without + "1 of its nodes"},
		{"two clusters, and one has no metrics", "DirectXPluginMissing", []string{
			in("a", plugin("n", 40)), in("a", target("n", 40)), in("a", desired("directx-device-plugin", "1x40")), in("b", desired("directx-device-plugin", "2x40"))},
			30 * time.Minute, without + "2 of its nodes in b"},
		{"two clusters, and one has no nodes", "DirectXPluginMissing", []string{
			in("a", plugin("n", 40)), in("a", target("n", 40)), in("a", desired("directx-device-plugin", "1x40")), in("b", desired("directx-device-plugin", "0x40"))},
			30 * time.Minute, ""},
		{"two clusters with the same addresses", "DirectXPluginMissing", []string{
			in("a", plugin("n", 40)), in("a", target("n", 40)), in("b", plugin("n", 5)), in("b", `up{job="p",instance="n:9400"} 1x4 0x40`)},
			30 * time.Minute, without + "n:9400 in b"},
		{"another job for the same address", "DirectXPluginMissing", []string{plugin("n", 40), target("n", 40), `up{job="other",instance="n:9400"} 0x40`},
			30 * time.Minute, ""},
		{"another program of another cluster at the same address", "DirectXPluginMissing", []string{
			in("a", plugin("n", 40)), in("a", target("n", 40)), in("b", `up{job="p",instance="n:9400"} 0x40`)}, 30 * time.Minute, ""},
	} {
		t.Run(example.name, func(t *testing.T) {
			rules := groups.Groups[0].Rules
			rule := rules[slices.IndexFunc(rules, func(rule rulefmt.RuleNode) bool { return rule.Alert.Value == example.alert })]
			if found := strings.Join(firing(t, rule, load(t, example.series), start.Add(example.after)), "; "); found != example.expected {
				t.Errorf("%s: %q, expected %q", example.alert, found, example.expected)
			}
		})
	}
}

// The alert for unhealthy devices knows by the reason which ones are out of service. This is the reason that the
// plugin writes.
func TestReasonOfDevicesOutOfService(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wddm.yaml")
	if err := os.WriteFile(file, []byte("cordonedDevices: ['PCIROOT(0)#PCI(1B00)']"), 0o644); err != nil {
		t.Fatal(err)
	}
	metrics := get(t, startDaemon(t, "--config", file))
	reason := regexp.MustCompile(`directx_device_healthy\{.*reason="(.*?)".*\} 0`).FindSubmatch(metrics)
	if reason == nil {
		t.Fatalf("no device is out of service:\n%s", metrics)
	}
	groups, faults := rulefmt.ParseFile(alertFile)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	expression, err := parser.ParseExpr(groups.Groups[0].Rules[0].Expr.Value)
	if err != nil {
		t.Fatal(err)
	}
	for _, matcher := range parser.ExtractSelectors(expression)[0] {
		if matcher.Name == "reason" && matcher.Matches(string(reason[1])) {
			t.Errorf("the alert fires for %q", reason[1])
		}
	}
}

// without is how the summary of DirectXPluginMissing begins.
const without = "Prometheus has no metrics of the device plugin on "

// plugin and target are the time series of a plugin that responds for some minutes, and then is no target any more.
func plugin(host string, minutes int) string {
	return fmt.Sprintf(`directx_device_plugin_build_info{job="p",instance="%s:9400"} 1x%d stale`, host, minutes-1)
}

func target(host string, minutes int) string {
	return fmt.Sprintf(`up{job="p",instance="%s:9400"} 1x%d stale`, host, minutes-1)
}

// node is the time series of a node that is no GPU node.
func node(host string, minutes int) string {
	return fmt.Sprintf(`up{job="node",instance="%s:9100"} 1x%d`, host, minutes)
}

// desired is the time series of kube-state-metrics for a DaemonSet.
func desired(daemonSet, values string) string {
	return fmt.Sprintf(`kube_daemonset_status_desired_number_scheduled{namespace="gpu",daemonset="%s"} %s`, daemonSet, values)
}

// in is a time series with the label of a cluster.
func in(cluster, series string) string {
	return strings.Replace(series, "{", `{cluster="`+cluster+`",`, 1)
}

// driver is the time series of a device with this driver version and these labels.
func driver(version string, more ...string) string {
	return fmt.Sprintf(`directx_device_info{%s}`, strings.Join(append([]string{firstDevice, `driver_version="` + version + `"`}, more...), ","))
}

// held is the time series of a pod that holds the same device.
func held(pod string) string {
	return fmt.Sprintf(`directx_device_allocated_replicas{%s,namespace="x",pod="%s"}`, firstDevice, pod)
}

// firing returns the summaries of the alerts that fire at a time. Prometheus evaluates a rule each minute by default, and an alert
// fires if its time series were there at all evaluations of `for`.
func firing(t *testing.T, rule rulefmt.RuleNode, data storage.Queryable, at time.Time) []string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: waitLimit})
	query := func(ctx context.Context, text string, at time.Time) (promql.Vector, error) {
		query, err := engine.NewInstantQuery(ctx, data, nil, text, at)
		if err != nil {
			return nil, err
		}
		defer query.Close()
		vector, err := query.Exec(ctx).Vector()
		return slices.Clone(vector), err
	}
	minutes := int(time.Duration(rule.For).Minutes())
	expr := rule.Expr.Value
	if minutes > 0 {
		// The value of an alert is that of its expression.
		expr = fmt.Sprintf("(%[1]s) and count_over_time((%[1]s)[%[2]dm:1m]) > %[2]d", expr, minutes)
	}
	found, err := query(t.Context(), expr, at)
	if err != nil {
		t.Fatal(err)
	}
	summaries := []string{}
	for _, sample := range found {
		text := "{{ $labels := .Labels }}{{ $value := .Value }}" + rule.Annotations["summary"]
		summary, err := template.NewTemplateExpander(t.Context(), text, rule.Alert.Value, template.AlertTemplateData(sample.Metric.Map(), nil, "", sample),
			model.TimeFromUnix(at.Unix()), template.QueryFunc(query), &url.URL{}, nil).Expand()
		if err != nil {
			t.Fatal(err)
		}
		summaries = append(summaries, strings.TrimSpace(summary))
	}
	slices.Sort(summaries)
	return summaries
}

// load returns the samples of time series.
func load(t *testing.T, texts []string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for _, text := range texts {
		names, values, err := parser.ParseSeriesDesc(text)
		if err != nil {
			t.Fatal(err)
		}
		chunk := chunkenc.NewXORChunk()
		samples, err := chunk.Appender()
		if err != nil {
			t.Fatal(err)
		}
		for minute, value := range values {
			if !value.Omitted {
				samples.Append(start.Add(time.Duration(minute)*time.Minute).UnixMilli(), value.Value)
			}
		}
		all = append(all, &storage.SeriesEntry{Lset: names, SampleIteratorFn: chunk.Iterator})
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &seriesSet{matching: slices.DeleteFunc(slices.Clone(all), func(series storage.Series) bool {
				return slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matcher.Matches(series.Labels().Get(matcher.Name)) })
			})}
		},
	}}
}

// seriesSet is the answer to a query.
type seriesSet struct {
	matching []storage.Series
	current  storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.matching) == 0 {
		return false
	}
	s.current, s.matching = s.matching[0], s.matching[1:]
	return true
}

func (s *seriesSet) At() storage.Series                { return s.current }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
