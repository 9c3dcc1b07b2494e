package manifests

import (
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"directx-device-plugin/testing/kubernetes/programs"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// TestVisibility checks the pods that copy directx-visible to their nodes, and that the plugin's pods
// do not depend on them.
func TestVisibility(t *testing.T) {
	chart := mustRender(t, read(t, examples+"directx-visible.yaml"))
	mustEqual(t, "name", visibleOf(chart).Name, "gpus-directx-device-plugin-visible")
	mustBeSafe(t, visibleOf(chart))
	pod := visibleOf(chart).Spec.Template.Spec
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		mustEqual(t, "image", container.Image, visibleImage+":"+version(t))
	}
	mustEqual(t, "copy", strings.Join(pod.InitContainers[0].Command, " "),
		mountPoint+`\directx-visible.exe --install C:\Program Files\directx-visible`)
	mustEqual(t, "wait", strings.Join(pod.Containers[0].Command, " "), mountPoint+`\directx-visible.exe --wait`)

	plugin := func(found objects) *appsv1.DaemonSet {
		return found.daemonSets[slices.IndexFunc(found.daemonSets, isPlugin)]
	}
	if matches(plugin(chart).Spec.Selector.MatchLabels, visibleOf(chart).Spec.Template.Labels) {
		t.Error("the DaemonSet of the plugin selects the pods of the other one")
	}
	before, after := plugin(mustRender(t, "")).Spec, plugin(chart).Spec
	variables := &after.Template.Spec.Containers[0].Env
	*variables = slices.DeleteFunc(*variables, func(variable corev1.EnvVar) bool {
		return strings.HasSuffix(variable.Name, "_DEVICE_PLUGIN_VISIBILITY")
	})
	if !reflect.DeepEqual(before, after) {
		t.Error("the pods of the plugin have more than the variables")
	}
}

// TestVisibilityIsConfigured checks that containers of every pool get directx-visible, whatever the
// configuration files say.
func TestVisibilityIsConfigured(t *testing.T) {
	found := mustRender(t, "visibility: {enabled: true, image: {repository: example.com/visible, tag: test}}\n"+
		"config: {map: {a: 'multitenancy: 2', b: 'visibility: off'}}\npools:\n"+
		"- {name: a, nodeSelector: {pool: a}, config: a}\n- {name: b, nodeSelector: {pool: b}, config: b, driverModels: [legacy]}")
	pools := []string{}
	for _, daemonSet := range found.daemonSets {
		mustBeSafe(t, daemonSet)
		pod := daemonSet.Spec.Template.Spec
		if isVisible(daemonSet) {
			pools = append(pools, pod.NodeSelector["pool"])
			mustEqual(t, "image", pod.Containers[0].Image, "example.com/visible:test")
			continue
		}
		c := newContainer(t, daemonSet, found.configMaps)
		output, err := c.run(append([]string{"simulate", "--output", "json", "--inventory", inventoryPath(twoT4)}, c.configuration()...)...)
		if err != nil || !strings.Contains(string(output), `\\directx-visible.exe"`) {
			t.Errorf("%s: containers do not get directx-visible: %v", daemonSet.Name, err)
		}
	}
	mustEqual(t, "pools", strings.Join(pools, " "), "a b")
}

// TestInjectionRequiresTheFiles checks that the devices of a node without directx-visible are unhealthy if the API server changes
// commands: a container that starts without it could never start.
func TestInjectionRequiresTheFiles(t *testing.T) {
	for inject, expected := range map[string]string{"false": "launcher", "true": "required"} {
		found := mustRender(t, "visibility: {enabled: true, inject: "+inject+"}\npools:\n"+
			"- {name: a, nodeSelector: {pool: a}}\n- {name: b, nodeSelector: {pool: b}, driverModels: [legacy]}\n"+
			// A rule for a resource that the policy does not know, and a variable that repeats the chart's.
			"env: [{name: LEGACY_DEVICE_PLUGIN_VISIBILITY, value: "+expected+"}]\n"+
			"config: {default: a, map: {a: 'resources: [{name: example.com/own, visibility: off, match: {vendor: amd}}]'}}")
		for _, daemonSet := range found.daemonSets {
			if !isPlugin(daemonSet) {
				continue
			}
			values := []string{}
			for _, variable := range daemonSet.Spec.Template.Spec.Containers[0].Env {
				if strings.HasSuffix(variable.Name, "_DEVICE_PLUGIN_VISIBILITY") && variable.Name != "LEGACY_DEVICE_PLUGIN_VISIBILITY" {
					values = append(values, variable.Value)
				}
			}
			for _, value := range values {
				mustEqual(t, daemonSet.Name, value, expected)
			}
			if strings.HasSuffix(daemonSet.Name, "-a") && len(values) != 2 {
				t.Errorf("%s has the variables %v", daemonSet.Name, values)
			}
		}
	}
}

// TestOneRegistry checks that one value names the registry of all images.
func TestOneRegistry(t *testing.T) {
	for repository, registry := range map[string]string{
		"registry.example.com:5000/gpu/plugin": "registry.example.com:5000/gpu/", "localhost:5000/plugin": "localhost:5000/", "localhost/plugin": "localhost/",
		"10.0.0.1/plugin": "10.0.0.1/", "10.0.0.1:5000/a/b/plugin": "10.0.0.1:5000/a/b/", "[fd00::1]:5000/plugin": "[fd00::1]:5000/", "registry:5000/plugin": "registry:5000/",
	} {
		images := map[string]bool{}
		for _, values := range everyImage {
			found := mustRender(t, values+"image: {repository: '"+repository+"'}")
			for _, daemonSet := range found.daemonSets {
				for _, container := range append(daemonSet.Spec.Template.Spec.InitContainers, daemonSet.Spec.Template.Spec.Containers...) {
					images[container.Image] = true
				}
			}
			for _, pod := range found.pods {
				images[pod.Containers[0].Image] = true
			}
			for _, test := range found.tests {
				images[test.Spec.Containers[0].Image] = true
			}
		}
		expected := []string{}
		for _, name := range []string{"directx-device-plugin-linux", "directx-visible", "plugin"} {
			expected = append(expected, registry+name+":"+version(t))
		}
		mustEqual(t, "images", strings.Join(slices.Sorted(maps.Keys(images)), " "), strings.Join(expected, " "))
	}
}

// TestInjectedResources checks that the policy knows every resource that the plugin advertises with directx-visible.
func TestInjectedResources(t *testing.T) {
	shared := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, name, name+".shared")
		}
		return all
	}
	for _, example := range []struct {
		values, own string
		expected    []string
	}{
		{"", "", shared(display, compute)},
		{"driverModels: [legacy]", "", shared("microsoft.com/directx")},
		{"pools: [{name: a, nodeSelector: {pool: a}, driverModels: [mcdm]}]", "", shared(compute)},
		{"env: [{name: WDDM_DEVICE_PLUGIN_RESOURCE_NAME, value: example.com/gpu}]", "", shared(display, compute, "example.com/gpu")},
		{"driverModels: [wddm]\nconfig: {map: {a: 'resourceName: example.com/gpu'}}", "", shared(display, "example.com/gpu")},
		{"config: {map: {a: '{\"Multitenancy\": 2, \"renameShared\": true, \"Resources\": [{\"Name\": \"nvidia.com/gpu\", \"match\": {\"vendor\": \"nvidia\"}}]}'}}", "",
			shared(display, compute, "nvidia.com/gpu")},
		{"config: {map: {a: 'resources: [{name: example.com/own, visibility: off, match: {vendor: amd}}, {name: example.com/gpu}]'}}", "",
			shared(display, compute, "example.com/gpu")},
		{"config: {name: x, default: a}", "nvidia.com/gpu", []string{"nvidia.com/gpu"}},
	} {
		found := mustRender(t, example.values+"\nvisibility: {enabled: true, inject: true, resources: ["+example.own+"]}")
		var names []string
		if err := yaml.Unmarshal([]byte(found.mutations[0].Spec.Variables[1].Expression), &names); err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		slices.Sort(example.expected)
		mustEqual(t, "resources with "+example.values, strings.Join(names, " "), strings.Join(example.expected, " "))
		for _, daemonSet := range found.daemonSets {
			if !isPlugin(daemonSet) || example.own != "" {
				continue
			}
			for name := range newContainer(t, daemonSet, found.configMaps).capacity(twoT4) {
				if !slices.Contains(names, name) && name != "example.com/own" {
					t.Errorf("with %s, the plugin also advertises %s", example.values, name)
				}
			}
		}
	}
}

// visibleOf returns the DaemonSet that copies directx-visible.
func visibleOf(found objects) *appsv1.DaemonSet {
	return found.daemonSets[slices.IndexFunc(found.daemonSets, isVisible)]
}

// TestImageCommand checks that kustomize adds the printed command of an image to the named container,
// and keeps the rest.
func TestImageCommand(t *testing.T) {
	visible, err := programs.Find("directx-visible")
	if err != nil {
		t.Fatal(err)
	}
	const image = `{"os": "windows", "config": {"Cmd": ["cmd /S /C a \"b\" $HOME \u001b\ud83d\ude00"], "ArgsEscaped": true}}`
	const pod = "{nodeSelector: {kubernetes.io/os: windows}, containers: [{name: first, image: a, args: [own]}, {name: '1', image: b, args: [old]}]}"
	const template = "{metadata: {labels: {app: a}}, spec: " + pod + "}"
	kinds := map[string]string{
		"Pod":         "{apiVersion: v1, kind: Pod, metadata: {name: app}, spec: " + pod + "}",
		"Deployment":  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {template: " + template + "}}",
		"DaemonSet":   "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: app}, spec: {template: " + template + "}}",
		"StatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: app}, spec: {template: " + template + "}}",
		"ReplicaSet":  "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: app}, spec: {template: " + template + "}}",
		"Job":         "{apiVersion: batch/v1, kind: Job, metadata: {name: app}, spec: {template: " + template + "}}",
		"CronJob": "{apiVersion: batch/v1, kind: CronJob, metadata: {name: app}, " +
			"spec: {jobTemplate: {spec: {template: " + template + "}}}}",
	}
	for kind, manifest := range kinds {
		t.Run(kind, func(t *testing.T) {
			command := exec.Command(visible, "command", "--patch", kind+"/app/1")
			command.Stdin = strings.NewReader(image)
			patch, err := command.Output()
			if err != nil {
				t.Fatal(err)
			}
			files := filesys.MakeFsInMemory()
			for name, text := range map[string]string{"manifest.yaml": manifest, "visible.yaml": string(patch),
				"kustomization.yaml": "{resources: [manifest.yaml], patches: [{path: visible.yaml}]}"} {
				if err := files.WriteFile("/"+name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/")
			if err != nil {
				t.Fatal(err)
			}
			text, err := rendered.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			var object struct {
				Spec struct {
					corev1.PodSpec
					Template    corev1.PodTemplateSpec
					JobTemplate struct {
						Spec struct{ Template corev1.PodTemplateSpec }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			containers := slices.Concat(object.Spec.Containers, object.Spec.Template.Spec.Containers,
				object.Spec.JobTemplate.Spec.Template.Spec.Containers)
			line := "cmd /S /C a \"b\" $$HOME \x1b\U0001f600"
			// kustomize puts what it merges first.
			expected := []corev1.Container{{Name: "1", Image: "b", Command: []string{"directx-visible"},
				Args: []string{"--command-line", line, "--"}}, {Name: "first", Image: "a", Args: []string{"own"}}}
			if !reflect.DeepEqual(containers, expected) {
				t.Errorf("%+v", containers)
			}
		})
	}
}
