package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// dashboardFile is the Grafana dashboard of the chart.
const dashboardFile = "../../../deploy/charts/directx-device-plugin/directx-devices.json"

// The panels of counters show what happened, also when the pod of a device changes, and only for the chosen nodes.
func TestPanels(t *testing.T) {
	const first, engine = firstDevice + `,gpu="0"`, firstDevice + `,gpu="0",engine="0",engine_type="3d"`
	for _, example := range []struct {
		name, panel string
		// series have a sample each minute, in the notation of promtool.
		series []string
		// expected are the values at minute 12, rounded to one decimal place.
		expected string
	}{
		{"a reset", "Driver resets", []string{`directx_device_resets_total{` + first + `} 0x9 1x10`}, "1.0"},
		{"a reset that ends the pod", "Driver resets", []string{
			`directx_device_resets_total{` + first + `,pod="a"} 0x9 stale`, `directx_device_resets_total{` + first + `,pod="b"} _x10 1x10`},
			"1.0"},
		{"resets before the first sample", "Driver resets", []string{`directx_device_resets_total{` + first + `} 3x20`}, "0.0"},
		{"an engine that is busy half of the time", "Engine utilization", []string{
			`directx_device_engine_busy_seconds_total{` + engine + `} 0+30x20`},
			"0.5"},
		{"an engine that is busy half of the time for one pod after the other", "Engine utilization", []string{
			`directx_device_engine_busy_seconds_total{` + engine + `,pod="a"} 0+30x10 stale`,
			`directx_device_engine_busy_seconds_total{` + engine + `,pod="b"} _x11 330+30x10`},
			"0.5"},
		{"a resource of another node", "Resources not ready", []string{
			`directx_device_info{` + first + `} 1x20`, `directx_device_info{instance="m:9400",Hostname="m"} 1x20`,
			`directx_device_plugin_resource_ready{instance="n:9400"} 1x20`, `directx_device_plugin_resource_ready{instance="m:9400"} 0x20`},
			"0.0"},
		{"a resource of a node without devices, whose name is not known", "Resources not ready", []string{
			`directx_device_info{` + first + `} 1x20`,
			`directx_device_plugin_resource_ready{instance="n:9400"} 0x20`, `directx_device_plugin_resource_ready{instance="m:9400"} 0x20`},
			"2.0"},
		{"registrations of two nodes", "Registrations", []string{
			`directx_device_info{` + first + `} 1x20`, `directx_device_info{instance="m:9400",Hostname="m"} 1x20`,
			`directx_device_plugin_registrations_total{instance="n:9400",resource="a.b/c",cause="startup"} 0x10 1x10`,
			`directx_device_plugin_registrations_total{instance="m:9400",resource="a.b/c",cause="startup"} 0x10 1x10`},
			"1.0"},
	} {
		t.Run(example.name, func(t *testing.T) {
			if found := values(t, example.series, expression(t, example.panel), 12*time.Minute); found != example.expected {
				t.Errorf("%s: %q, expected %q", example.panel, found, example.expected)
			}
		})
	}
}

// The recording rule for the utilization has a value at Prometheus' default interval, also between two
// scrapes.
func TestRecordedUtilization(t *testing.T) {
	page, err := os.ReadFile("../../../docs/nvidia.md")
	if err != nil {
		t.Fatal(err)
	}
	rule := regexp.MustCompile(`record: DCGM_FI_DEV_GPU_UTIL .*\n *expr: (.*)`).FindSubmatch(page)
	if rule == nil {
		t.Fatal("docs/nvidia.md has no rule for the utilization")
	}
	series := []string{`directx_device_engine_busy_seconds_total{` + firstDevice + `,engine="0",engine_type="3d"} 0+30x20`}
	for _, after := range []time.Duration{12 * time.Minute, 12*time.Minute + 30*time.Second} {
		if found := values(t, series, string(rule[1]), after); found != "50.0" {
			t.Errorf("after %v: %q, expected 50.0", after, found)
		}
	}
}

// values evaluates an expression, and returns its values rounded to one decimal place.
func values(t *testing.T, series []string, expression string, after time.Duration) string {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100_000, Timeout: waitLimit})
	query, err := engine.NewInstantQuery(t.Context(), load(t, series), nil, expression, start.Add(after))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, sample := range vector {
		found = append(found, fmt.Sprintf("%.1f", sample.F))
	}
	return strings.Join(found, " ")
}

// expression returns the first expression of a panel, for all devices of the node n and the last ten minutes.
func expression(t *testing.T, panel string) string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, found := range dashboard.Panels {
		if found.Title == panel {
			return strings.NewReplacer("$node", "n", "$gpu", ".*", "$__range", "10m", "$__rate_interval", "4m").Replace(found.Targets[0].Expr)
		}
	}
	t.Fatalf("the dashboard has no panel %q", panel)
	return ""
}
