package manifests

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// defaultValues are the values in values.yaml.
func defaultValues(t *testing.T) (values map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// sections returns the paths of all values that have keys of the chart below them.
func sections(values map[string]any, prefix string) []string {
	found := []string{}
	for name, value := range values {
		// Below these, users choose the keys.
		if section, _ := value.(map[string]any); len(section) > 0 && !slices.Contains([]string{"labels", "requests", "limits"}, name) {
			found = append(append(found, prefix+name), sections(section, prefix+name+".")...)
		}
	}
	return found
}

// at returns the section at a path.
func at(values map[string]any, path string) map[string]any {
	for name := range strings.SplitSeq(path, ".") {
		values = values[name].(map[string]any)
	}
	return values
}

// TestNulls checks that a section or a key with nothing after it means its default.
func TestNulls(t *testing.T) {
	mustReadNullsAsDefaults(t, helm)
}

func mustReadNullsAsDefaults(t *testing.T, helm string) {
	t.Helper()
	values := defaultValues(t)
	const everything = `
metrics: {enabled: true, address: 127.0.0.1}
prometheusRule: {enabled: true, labels: {a: b}}
dashboard: {enabled: true, labels: {a: b}}
visibility: {enabled: true, inject: true, require: true, image: {tag: test}}
featureDiscovery: {enabled: true, cleanup: true, gfdLabels: true, apiServer: {host: a, port: 1}}
serviceAccount: {name: directx, annotations: {a: b}}
psa: {enabled: true}
updateStrategy: {rollingUpdate: {maxUnavailable: 1}}
livenessProbe: {periodSeconds: 1}
resources: {limits: {cpu: 3, a/b: 1}}
config: {map: {a: ''}}
logLevel: debug
tolerations: []
nodeSelector: {a: b}
commonLabels: {a: b}
podLabels: {a: b}
`
	const demonstration = "demonstration: {enabled: true, gpus: [L4], image: {tag: test}}"
	outcome := func(t *testing.T, values string, more ...string) string {
		t.Helper()
		manifest, messages, err := runVersion(t, helm, append(append(template(t, values), "--kube-version=1.37.0"), more...)...)
		if err == nil {
			return documents(manifest)
		}
		if strings.Contains(messages, "nil pointer") || strings.Contains(messages, "schema") {
			t.Error(messages)
		}
		return messages
	}
	// A key after the other, and every key at once.
	keys := slices.Sorted(maps.Keys(values))
	for _, path := range append(sections(values, ""), keys...) {
		t.Run("null/"+path, func(t *testing.T) {
			t.Parallel()
			nulls, defaults := []string{"--set", path + "=null"}, []string{}
			if slices.Contains(keys, path) {
				defaults = asJSON(t, path, values[path])
			} else {
				defaults = asJSON(t, path, at(values, path))
			}
			for _, base := range []string{"", everything, demonstration} {
				mustEqual(t, "with "+base, outcome(t, base, nulls...), outcome(t, base, defaults...))
			}
		})
	}
	for _, path := range append(sections(values, ""), "") {
		t.Run("nulls/"+path, func(t *testing.T) {
			t.Parallel()
			section, prefix := values, ""
			if path != "" {
				section, prefix = at(values, path), path+"."
			}
			nulls, defaults := []string{}, []string{}
			for name, value := range section {
				nulls = append(nulls, "--set", prefix+name+"=null")
				defaults = append(defaults, asJSON(t, prefix+name, value)...)
			}
			for _, base := range []string{"", everything, demonstration} {
				mustEqual(t, "with "+base, outcome(t, base, nulls...), outcome(t, base, defaults...))
			}
		})
	}
}

// asJSON returns the arguments of helm that set a value and everything below it.
func asJSON(t *testing.T, path string, value any) []string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--set-json", path + "=" + string(text)}
}

// valuesWithoutSwitch are values of the chart that have no effect, because the switch of their section is off.
func valuesWithoutSwitch(t *testing.T) (found []invalidValue) {
	t.Helper()
	others := map[string]any{
		"visibility.resources": []string{"example.com/gpu"}, "podMonitor.relabelings": []any{map[string]string{"targetLabel": "node"}},
		"serviceMonitor.relabelings": []any{map[string]string{"targetLabel": "node"}},
		"demonstration.gpus":         []string{"L4"},
		"podMonitor.interval":        "30s", "serviceMonitor.interval": "30s", "metrics.address": "127.0.0.1",
	}
	values := defaultValues(t)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		section, _ := values[name].(map[string]any)
		sectionSwitch := name + ".enabled"
		switch name {
		case "serviceAccount", "rbac":
			sectionSwitch = "featureDiscovery.enabled"
		default:
			if _, hasSwitch := section["enabled"]; !hasSwitch {
				continue
			}
		}
		for _, path := range leaves(section, name+".") {
			// One file of values may name all images, also those of what is off.
			if path == sectionSwitch || strings.Contains(path, ".image.") {
				continue
			}
			other, isChosen := others[path]
			if !isChosen {
				other = another(t, path, valueAt(values, path))
			}
			needs := sectionSwitch
			text, err := json.Marshal(nested(path, other))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, invalidValue{path + " without its switch", string(text), path + " needs " + needs + ", and without it "})
		}
	}
	// Switches within a section.
	const discovery = "featureDiscovery: {enabled: true"
	return append(found,
		invalidValue{"a startup taint that nothing removes", "featureDiscovery: {startupTaint: example.com/a}", "nothing removes the taint, so that nodes with it stay closed to pods forever: set featureDiscovery.enabled"},
		invalidValue{"a monitor without metrics", "podMonitor: {enabled: true}", "podMonitor.enabled needs metrics.enabled"},
		invalidValue{"Services without metrics", "serviceMonitor: {enabled: true}", "serviceMonitor.enabled needs metrics.enabled"},
		invalidValue{"alerts without metrics", "prometheusRule: {enabled: true}", "prometheusRule.enabled needs metrics.enabled"},
		invalidValue{"dashboard without metrics", "dashboard: {enabled: true}", "dashboard.enabled needs metrics.enabled"},
		invalidValue{"clean-up without roles", discovery + ", cleanup: true}\nrbac: {create: false}", "featureDiscovery.cleanup needs rbac.create, and without it its Job has no role"},
		invalidValue{"a port of no API server", discovery + ", apiServer: {port: 6443}}", "featureDiscovery.apiServer.port needs featureDiscovery.apiServer.host"},
		invalidValue{"annotations of no account", discovery + "}\nserviceAccount: {create: false, name: a, annotations: {a: b}}", "serviceAccount.annotations needs serviceAccount.create"},
		invalidValue{"requirement without injection", "visibility: {enabled: true, require: true}", "visibility.require needs visibility.inject"},
		invalidValue{"resources without injection", "visibility: {enabled: true, resources: [example.com/gpu]}", "visibility.resources needs visibility.inject"},
	)
}

// leaves returns the paths of all values below a section that are no sections themselves.
func leaves(section map[string]any, prefix string) []string {
	found := []string{}
	for name, value := range section {
		if inner, _ := value.(map[string]any); len(inner) > 0 && !slices.Contains([]string{"labels", "requests", "limits"}, name) {
			found = append(found, leaves(inner, prefix+name+".")...)
		} else {
			found = append(found, prefix+name)
		}
	}
	slices.Sort(found)
	return found
}

func valueAt(values map[string]any, path string) any {
	end := strings.LastIndex(path, ".")
	return at(values, path[:end])[path[end+1:]]
}

// another returns another value of the same type.
func another(t *testing.T, path string, value any) any {
	t.Helper()
	switch value := value.(type) {
	case bool:
		return !value
	case float64:
		return value + 1
	case string:
		return value + "other"
	case map[string]any:
		return map[string]string{"cpu": "123m"}
	}
	t.Fatalf("%s has the type %T", path, value)
	return nil
}

// nested returns values with only this one.
func nested(path string, value any) any {
	names := strings.Split(path, ".")
	slices.Reverse(names)
	for _, name := range names {
		value = map[string]any{name: value}
	}
	return value
}

// contradictions are additional arguments that the chart has values for.
func contradictions() (found []invalidValue) {
	for option, value := range map[string]string{
		"--driver-model": "driverModels", "--config": "config.map", "--device-plugin-dir": "devicePluginDir", "--log-format": "logFormat",
		"--log-level": "logLevel", "--listen": "metrics.enabled, metrics.address and metrics.port", "--inventory": "demonstration.inventory",
	} {
		message := fmt.Sprintf("extraArgs contains %s, which the chart sets: set %s instead", option, value)
		found = append(found, invalidValue{option, "extraArgs: ['" + option + "=x']", message},
			invalidValue{option + " and its value", "extraArgs: [--pod-resources=x, " + option + ", x]", message})
	}
	return append(found, invalidValue{"--demonstration", "extraArgs: [--demonstration]", "set demonstration.enabled instead"})
}
