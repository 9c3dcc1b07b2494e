package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// change changes something and notes what, or does nothing if that is not possible now.
type change func(w *walk) bool

// changes are as likely as they are often in the list.
var changes = []change{
	unplug, unplug, plugIn, plugIn, plugIn, setProblem, setProblem, replaceDriver,
	reconfigure, reconfigure, reconfigure, misconfigure,
	annotate, annotate, createPod, createPod, createPod, deletePod, deletePod,
}

// makeChange makes one of the changes that are possible.
func (w *walk) makeChange() {
	for !oneOf(w, changes)(w) {
	}
}

// plugged are the adapters with a device that the host has.
func (w *walk) plugged() []int {
	found := []int{}
	for index, adapter := range w.host.document["adapters"].([]any) {
		if _, hasDevice := adapter.(map[string]any)["pnp"]; hasDevice {
			found = append(found, index)
		}
	}
	return found
}

func pnp(adapter map[string]any) map[string]any { return adapter["pnp"].(map[string]any) }
func deviceID(adapter map[string]any) string    { return pnp(adapter)["id"].(string) }
func location(adapter map[string]any) string {
	return pnp(adapter)["locationPaths"].([]any)[0].(string)
}

func unplug(w *walk) bool {
	plugged := w.plugged()
	if len(plugged) == 0 {
		return false
	}
	adapter := w.host.removeGPU(oneOf(w, plugged)).(map[string]any)
	w.unplugged = append(w.unplugged, adapter)
	w.note("unplug %s", location(adapter))
	return true
}

func plugIn(w *walk) bool {
	if len(w.unplugged) == 0 {
		return false
	}
	adapter := oneOf(w, w.unplugged)
	w.unplugged = slices.DeleteFunc(w.unplugged, func(other map[string]any) bool { return deviceID(other) == deviceID(adapter) })
	w.host.returnGPU(adapter)
	w.note("plug in %s", location(adapter))
	return true
}

func setProblem(w *walk) bool {
	plugged := w.plugged()
	if len(plugged) == 0 {
		return false
	}
	index := oneOf(w, plugged)
	code := 43 - int(number(pnp(w.host.adapter(index))["problemCode"]))
	w.host.setProblem(index, code)
	w.note("problem code %d of %s", code, location(w.host.adapter(index)))
	return true
}

// number returns a number of an inventory, which was read from a file or set by a test.
func number(value any) int64 {
	switch value := value.(type) {
	case float64:
		return int64(value)
	case int64:
		return value
	case int:
		return int64(value)
	default:
		panic(fmt.Sprintf("%v is no number", value))
	}
}

func replaceDriver(w *walk) bool {
	plugged := w.plugged()
	if len(plugged) == 0 {
		return false
	}
	index := oneOf(w, plugged)
	version := fmt.Sprintf("32.0.15.%d", 1000+w.random.IntN(9000))
	w.host.set(index, "driverVersion", version)
	w.note("driver %s of %s", version, location(w.host.adapter(index)))
	return true
}

// reconfigure gives the plugin another valid configuration.
func reconfigure(w *walk) bool {
	configuration := map[string]any{}
	if w.random.IntN(2) == 0 {
		configuration["multitenancy"] = 1 + w.random.IntN(4)
	}
	if w.random.IntN(3) == 0 {
		configuration["renameShared"] = true
	}
	if w.random.IntN(3) == 0 {
		configuration["includeIntegrated"] = true
	}
	rules := []any{}
	for _, rule := range []map[string]any{
		{"name": "example.com/slot", "match": map[string]any{"locationPath": "PCIROOT(0)#PCI(1B00)"}, "multitenancy": 2},
		{"name": "nvidia.com/gpu", "match": map[string]any{"vendor": "nvidia"}},
		{"name": "example.com/npu", "match": map[string]any{"driverModel": "mcdm"}, "multitenancy": 3},
	} {
		if w.random.IntN(3) == 0 {
			rules = append(rules, rule)
		}
	}
	if len(rules) > 0 {
		configuration["resources"] = rules
	}
	if w.random.IntN(4) == 0 {
		configuration["cordonedDevices"] = []string{"PCIROOT(0)#PCI(1C00)"}
	}
	w.configureWalk(configuration)
	text, _ := json.Marshal(configuration)
	w.note("configure %s", text)
	return true
}

func (w *walk) configureWalk(configuration map[string]any) {
	w.t.Helper()
	w.active = configuration
	w.active["removalGraceSeconds"] = removalGrace
	w.isRejected = false
	w.configure(mustEncode(w.t, configuration))
}

// misconfigure writes a configuration that the plugin rejects. One that starts now would exit.
func misconfigure(w *walk) bool {
	if w.pluginRestarts {
		return false
	}
	invalid := oneOf(w, []string{"multitenancy: many", "multitenacy: 2", "resources: [{name: x}]", "["})
	w.isRejected = true
	w.configure(invalid)
	w.note("configure `%s`", invalid)
	return true
}

// annotate takes devices out of service with the annotation of the node, and the others not.
func annotate(w *walk) bool {
	names := []string{}
	for _, index := range w.plugged() {
		adapter := w.host.adapter(index)
		switch w.random.IntN(6) {
		case 0:
			names = append(names, deviceID(adapter))
		case 1:
			names = append(names, location(adapter))
		}
	}
	if w.random.IntN(4) == 0 {
		names = append(names, "PCIROOT(9)#PCI(0900)")
	}
	if slices.Equal(names, w.cordons) {
		return false
	}
	w.cordons = names
	annotations := map[string]any{labelPrefix + "cordoned-devices": nil}
	if len(names) > 0 {
		annotations[labelPrefix+"cordoned-devices"] = strings.Join(names, ", ")
	}
	w.patch(mustEncode(w.t, map[string]any{"metadata": map[string]any{"annotations": annotations}}))
	w.note("cordon %q", names)
	return true
}

func createPod(w *walk) bool {
	resources := []string{}
	for _, name := range slices.Sorted(maps.Keys(w.expected.resources)) {
		if w.expected.resources[name].capacity > 0 {
			resources = append(resources, name)
		}
	}
	if len(resources) == 0 || len(w.pods) == 6 {
		return false
	}
	w.createWalkPod(oneOf(w, resources))
	return true
}

func (w *walk) createWalkPod(resource string) {
	w.t.Helper()
	w.podsEver++
	p := walkPod{w.createSpec(fmt.Sprint(w.podsEver), w.podSpecOf(v1.ResourceName(resource), 1)), resource}
	w.pods = append(w.pods, p)
	w.note("create pod %s with %s", p.name, resource)
}

func deletePod(w *walk) bool {
	if len(w.pods) == 0 {
		return false
	}
	p := oneOf(w, w.pods)
	w.deleteWalkPod(p)
	return true
}

func (w *walk) deleteWalkPod(p walkPod) {
	w.t.Helper()
	w.pods = slices.DeleteFunc(w.pods, func(other walkPod) bool { return other.name == p.name })
	w.deleted = append(w.deleted, p.pod)
	p.delete()
	w.note("delete pod %s", p.name)
}

func mustEncode(t interface{ Fatal(...any) }, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// disturbance makes a change while something is out of order.
type disturbance struct {
	// program is what is disturbed. A step disturbs each program once at most.
	program string
	do      func(w *walk, change func())
}

var disturbances = []disturbance{
	{"plugin", killPlugin}, {"plugin", killPlugin}, {"plugin", stopPlugin}, {"plugin", replacePlugin},
	{"discovery", killDiscovery}, {"discovery", stopDiscovery},
	{"kubelet", killKubelet},
	{"API server", killAPIServer},
}

// chooseDisturbances returns up to two disturbances.
func (w *walk) chooseDisturbances() []disturbance {
	w.pluginRestarts = false
	chosen := []disturbance{}
	for range w.random.IntN(3) {
		d := oneOf(w, disturbances)
		isTaken := func(other disturbance) bool { return other.program == d.program }
		if slices.ContainsFunc(chosen, isTaken) || d.program == "plugin" && w.isRejected {
			continue
		}
		w.pluginRestarts = w.pluginRestarts || d.program == "plugin"
		chosen = append(chosen, d)
	}
	return chosen
}

// pause waits for up to three seconds.
func (w *walk) pause() {
	time.Sleep(time.Duration(w.random.IntN(3000)) * time.Millisecond)
}

func killPlugin(w *walk, change func()) {
	w.note("kill the plugin")
	w.plugin.kill()
	change()
	w.pause()
	w.note("start the plugin")
	w.startPlugin()
}

func stopPlugin(w *walk, change func()) { stop(w, w.plugin, "plugin", change) }

// stop makes a change while a program is stopped.
func stop(w *walk, p *process, name string, change func()) {
	w.note("stop the %s", name)
	p.signal(w.t, syscall.SIGSTOP)
	change()
	w.pause()
	w.note("continue the %s", name)
	p.signal(w.t, syscall.SIGCONT)
}

// replacePlugin starts another plugin and then ends the one before, as an update with a surge does.
func replacePlugin(w *walk, change func()) {
	change()
	w.note("start another plugin")
	before := w.plugin
	w.startPlugin()
	w.pause()
	w.note("end the plugin before")
	before.shutDown(w.t)
}

func killDiscovery(w *walk, change func()) {
	w.note("kill the feature discovery")
	w.discovery.kill()
	change()
	w.pause()
	w.note("start the feature discovery")
	w.startItsDiscovery()
}

func stopDiscovery(w *walk, change func()) { stop(w, w.discovery, "feature discovery", change) }

func killKubelet(w *walk, change func()) {
	w.note("kill the kubelet")
	w.kubelet.kill()
	change()
	w.pause()
	w.note("start the kubelet")
	w.startKubelet()
}

func killAPIServer(w *walk, change func()) {
	w.note("kill the API server")
	w.server.kill()
	change()
	w.pause()
	w.note("start the API server")
	w.server.start()
}
