package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// contentType is OpenMetrics 1.0.
const contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// exposition is what Prometheus understood.
type exposition struct {
	// kinds has the type of each metric family.
	kinds map[string]string
	// series has the value of each time series, by its labels.
	series map[string]float64
}

// parse returns what Prometheus understands of a scrape, or an error where that is incomplete: a
// time series without the type of its family, or one that occurs twice.
func parse(body []byte) (exposition, error) {
	found := exposition{map[string]string{}, map[string]float64{}}
	parser, err := textparse.New(body, contentType, false, labels.NewSymbolTable())
	if err != nil {
		return found, err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			found.kinds[string(name)] = string(kind)
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			var names labels.Labels
			parser.Metric(&names)
			if _, twice := found.series[names.String()]; twice {
				return found, fmt.Errorf("two values of %s", names)
			}
			found.series[names.String()] = value
			if found.kinds[family(names.Get(labels.MetricName), found.kinds)] == "" {
				return found, fmt.Errorf("no type of %s", names)
			}
		}
	}
}

// family returns the metric family of a time series.
func family(name string, kinds map[string]string) string {
	for _, suffix := range []string{"", "_total", "_bucket", "_sum", "_count"} {
		if short, found := strings.CutSuffix(name, suffix); found && kinds[short] != "" {
			return short
		}
	}
	return name
}

// mustParse fails the test where Prometheus cannot read the scrape.
func mustParse(t *testing.T, body []byte) exposition {
	t.Helper()
	found, err := parse(body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return found
}

// names returns the names of all time series.
func (e exposition) names() []string {
	return slices.Sorted(maps.Keys(e.series))
}

// The recorded text contains every metric: the tests of the crate compare it with the catalog.
func TestPrometheusReadsEveryMetric(t *testing.T) {
	const path = "../../../crates/application/daemon/tests/metrics/snapshots/metrics__scrape__openmetrics.snap"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := bytes.Cut(bytes.TrimPrefix(file, []byte("---\n")), []byte("\n---\n"))
	if !found {
		t.Fatalf("%s has no header", path)
	}
	read := mustParse(t, body)
	if kind := read.kinds["directx_device_engine_busy_seconds"]; kind != "counter" {
		t.Errorf("the engines' time is a %q", kind)
	}
}

func TestPrometheusReadsTheDaemon(t *testing.T) {
	scrape := mustParse(t, get(t, startDaemon(t)))
	healthy := 0.0
	for name, value := range scrape.series {
		if strings.Contains(name, `__name__="directx_device_healthy"`) {
			healthy += value
		}
	}
	if healthy != 2 {
		t.Errorf("%v healthy devices, expected 2: %q", healthy, scrape.names())
	}
}

// Without this, a parser that accepts everything would prove nothing.
func TestDefectsAreFound(t *testing.T) {
	const good = "# TYPE a gauge\n# HELP a Text.\na{b=\"c\"} 1\n# EOF\n"
	mustParse(t, []byte(good))
	for name, body := range map[string]string{
		"a value that is none":  strings.Replace(good, "} 1", "} one", 1),
		"an unescaped quote":    strings.Replace(good, "c", "c\"", 1),
		"a type that is none":   strings.Replace(good, "gauge", "gouge", 1),
		"no type":               strings.Replace(good, "# TYPE a", "# TYPE b", 1),
		"two equal time series": strings.Replace(good, "# EOF", "a{b=\"c\"} 2\n# EOF", 1),
		"no end":                strings.TrimSuffix(good, "# EOF\n"),
	} {
		if _, err := parse([]byte(body)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
