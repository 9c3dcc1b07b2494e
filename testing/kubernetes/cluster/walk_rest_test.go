package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	v1 "k8s.io/api/core/v1"
)

const (
	// restLimit is how long a node may take until it is at rest, on a busy machine.
	restLimit = 90 * time.Second
	// restTime is how long a node at rest must stay as it is. Programs look for changes once a second.
	restTime = 2 * time.Second
)

// expectation is what `simulate` predicts for a node.
type expectation struct {
	resources  map[string]count
	devices    map[listedDevice]deviceState
	labels     string
	conditions map[v1.NodeConditionType]string
}

// listedDevice is a device of a resource.
type listedDevice struct{ resource, id string }

// deviceState is what is said of a device.
type deviceState struct {
	replicas  int
	isHealthy bool
}

// rest waits until everything on the node says what is expected, and still says it a little later.
func (w *walk) rest() {
	w.t.Helper()
	w.expected = w.predict()
	var equalSince time.Time
	for start := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		if w.hasKubeletPanicked() {
			// As the manager of services does.
			w.note("the kubelet has panicked and starts again")
			w.startKubelet()
		}
		found := w.differences()
		switch {
		case len(found) == 0 && equalSince.IsZero():
			equalSince = time.Now()
		case len(found) == 0 && time.Since(equalSince) > restTime:
			w.deleted = nil
			return
		case len(found) > 0 && time.Since(start) > restLimit:
			w.t.Fatalf("not at rest after %v:\n%s", restLimit, strings.Join(found, "\n"))
		case len(found) > 0:
			equalSince = time.Time{}
		}
	}
}

// predict returns what `simulate` predicts for the host, the configuration and the cordons of the node.
// It knows cordons only from the configuration.
func (w *walk) predict() expectation {
	w.t.Helper()
	cordons := slices.Clone(w.cordons)
	configuration := maps.Clone(w.active)
	if configured, ok := configuration["cordonedDevices"].([]string); ok {
		cordons = append(cordons, configured...)
	}
	slices.Sort(cordons)
	configuration["cordonedDevices"] = slices.Compact(cordons)
	inventory, config := filepath.Join(w.folder, "predicted.json"), filepath.Join(w.folder, "predicted.yaml")
	replaceFile(w.t, inventory, []byte(mustEncode(w.t, w.host.document)))
	replaceFile(w.t, config, []byte(mustEncode(w.t, configuration)))
	predicted := w.simulateWith(nil, []string{"--inventory", inventory, "--config", config})

	expected := expectation{map[string]count{}, map[listedDevice]deviceState{}, labelLines(predicted.Labels), map[v1.NodeConditionType]string{}}
	for _, resource := range predicted.Resources {
		expected.resources[resource.Name] = count{resource.Capacity, resource.Allocatable}
		for _, replica := range resource.Devices {
			device := listedDevice{resource.Name, replica.ID[:strings.LastIndex(replica.ID, `\`)]}
			replicas := expected.devices[device].replicas + 1
			expected.devices[device] = deviceState{replicas, replica.Health == "Healthy"}
		}
	}
	for _, c := range predicted.Conditions {
		expected.conditions[v1.NodeConditionType(c.Type)] = conditionText(c.Status, c.Reason, c.Message)
	}
	return expected
}

// sameReasons replaces reasons that differ between a node and its prediction.
var sameReasons = strings.NewReplacer(
	"cordonedDevices of the configuration", "an administrator",
	"the node's annotation "+labelPrefix+"cordoned-devices", "an administrator",
)

// conditionText returns a condition as text. The devices are in any order.
func conditionText(status, reason, message string) string {
	what, devices, _ := strings.Cut(sameReasons.Replace(message), ": ")
	sorted := strings.Split(devices, "; ")
	slices.Sort(sorted)
	return fmt.Sprintf("%s %s, %s: %s", status, reason, what, strings.Join(sorted, "; "))
}

// differences returns what differs from the expectation.
func (w *walk) differences() []string {
	w.t.Helper()
	found := w.nodeDifferences()
	found = append(found, w.statusDifferences()...)
	found = append(found, w.metricDifferences()...)
	if text, err := w.discovery.get("/readyz"); err != nil {
		found = append(found, fmt.Sprintf("the feature discovery is not ready: %s%v", text, err))
	}
	return append(found, w.podDifferences()...)
}

// nodeDifferences compares the node object.
func (w *walk) nodeDifferences() []string {
	object := w.object()
	found := []string{}
	for name, expected := range w.expected.resources {
		if actual := countOf(object, v1.ResourceName(name)); actual != expected {
			found = append(found, fmt.Sprintf("the node has of %s %s, expected %s", name, actual, expected))
		}
	}
	for name, allocatable := range object.Status.Allocatable {
		// The kubelet keeps the capacity of a resource that no plugin has any more for some minutes.
		if _, isExpected := w.expected.resources[string(name)]; !isExpected && strings.Contains(string(name), "/") && allocatable.Value() > 0 {
			found = append(found, fmt.Sprintf("the node has %s of %s, expected none", allocatable.String(), name))
		}
	}
	if labels := labelLines(object.Labels); labels != w.expected.labels {
		found = append(found, fmt.Sprintf("the labels are\n%s\nexpected\n%s", labels, w.expected.labels))
	}
	for kind, expected := range w.expected.conditions {
		actual := "none"
		for _, c := range object.Status.Conditions {
			if c.Type == kind {
				actual = conditionText(string(c.Status), c.Reason, c.Message)
			}
		}
		if actual != expected {
			found = append(found, fmt.Sprintf("%s is\n%s\nexpected\n%s", kind, actual, expected))
		}
	}
	return found
}

// statusDifferences compares the status of the plugin.
func (w *walk) statusDifferences() []string {
	output, err := exec.Command(plugin, "status", "--output", "json", "--device-plugin-dir", w.devicePlugins()).Output()
	var status struct {
		Ready     bool `json:"ready"`
		Resources []struct {
			Name string `json:"name"`
		} `json:"resources"`
		RejectedConfigurations []string `json:"rejectedConfigurations"`
	}
	if decoded := json.Unmarshal(output, &status); decoded != nil || err != nil || !status.Ready {
		return []string{fmt.Sprintf("the status is %s: %v %v", output, err, decoded)}
	}
	names := []string{}
	for _, resource := range status.Resources {
		names = append(names, resource.Name)
	}
	expected := slices.Sorted(maps.Keys(w.expected.resources))
	if slices.Sort(names); !slices.Equal(names, expected) || (len(status.RejectedConfigurations) > 0) != w.isRejected {
		return []string{fmt.Sprintf("the status is %s, expected the resources %q, a rejected configuration: %v", output, expected, w.isRejected)}
	}
	return nil
}

// metricDifferences compares the metrics of the plugin.
func (w *walk) metricDifferences() []string {
	text, err := w.plugin.get("/metrics")
	actual := map[listedDevice]deviceState{}
	if err == nil {
		actual, err = devicesOf(text)
	}
	if err != nil {
		return []string{fmt.Sprintf("the metrics cannot be read: %v", err)}
	}
	if !maps.Equal(actual, w.expected.devices) {
		return []string{fmt.Sprintf("the metrics have the devices %v, expected %v", actual, w.expected.devices)}
	}
	return nil
}

// devicesOf returns the devices in metrics.
func devicesOf(text string) (map[listedDevice]deviceState, error) {
	parser, err := textparse.New([]byte(text), "application/openmetrics-text; version=1.0.0", false, labels.NewSymbolTable())
	if err != nil {
		return nil, err
	}
	health, replicas, infos := map[string]bool{}, map[listedDevice]int{}, []listedDevice{}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var names labels.Labels
		parser.Metric(&names)
		device := listedDevice{names.Get("resource"), names.Get("device")}
		switch names.Get(labels.MetricName) {
		case "directx_device_info":
			infos = append(infos, device)
		case "directx_device_healthy":
			health[device.id] = value == 1
		case "directx_device_replicas":
			replicas[device] = int(value)
		}
	}
	devices := map[listedDevice]deviceState{}
	for _, device := range infos {
		devices[device] = deviceState{replicas[device], health[device.id]}
	}
	return devices, nil
}

// podDifferences says which pods do not run although there is room for them, or do not end. It does
// what a controller does for a pod that the kubelet has refused.
func (w *walk) podDifferences() []string {
	found := []string{}
	running := map[string]int64{}
	waiting := []walkPod{}
	for _, p := range slices.Clone(w.pods) {
		switch state := p.state(); {
		case state == "Running":
			running[p.resource]++
		case isOutOfDevices(state):
			w.deleteWalkPod(p)
			w.createWalkPod(p.resource)
			found = append(found, "pod "+p.name+" was replaced")
		case state == string(v1.PodPending):
			waiting = append(waiting, p)
		default:
			found = append(found, fmt.Sprintf("pod %s: %s", p.name, state))
		}
	}
	for _, p := range waiting {
		if room := w.expected.resources[p.resource].allocatable - running[p.resource]; room > 0 {
			found = append(found, fmt.Sprintf("pod %s waits, although there is room for %d with %s", p.name, room, p.resource))
		}
	}
	for _, p := range w.deleted {
		if p.object().Name != "" {
			found = append(found, fmt.Sprintf("pod %s has not ended", p.name))
		}
	}
	return found
}
