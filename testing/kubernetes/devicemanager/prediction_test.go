package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// variant is a configuration.
type variant struct {
	name         string
	config       string
	driverModels []string
}

// variants are the configurations in which every inventory is tested.
var variants = []variant{
	{name: "default configuration"},
	{name: "four replicas", config: "multitenancy: 4"},
	{name: "four replicas, packed, only the first device", config: "multitenancy: 4\nallocationPolicy: packed\nmultiDevice: first"},
	{name: "one device per container", config: "multitenancy: 4\nmultiDevice: reject"},
	{name: "with runtime files and directx-visible", config: "runtimeMounts: always\nvisibility: launcher"},
	{name: "without runtime files", config: "runtimeMounts: never"},
	{name: "without environment hints", config: "environmentHints: false"},
	{name: "only wddm", driverModels: []string{"wddm"}},
	{name: "every driver model", driverModels: []string{"wddm", "mcdm"}},
	{name: "legacy driver model", driverModels: []string{"legacy"}},
}

// TestSimulateMatchesKubelet compares the prediction of `simulate` with the kubelet: the resources,
// their counts, which pods are admitted with which devices, and the options of their containers.
func TestSimulateMatchesKubelet(t *testing.T) {
	for _, fixture := range predictedInventories(t) {
		for _, variant := range variants {
			t.Run(fixture+"/"+variant.name, func(t *testing.T) {
				nodeLog.start(t)
				common := arguments{inventoryPath(fixture), writeConfig(t, variant.config), variant.driverModels}
				pods := podsToExhaustion(simulate(t, common, nil).Resources)
				predicted := simulate(t, common, pods)
				n := startNode(t)
				p := startPlugin(t, common)
				mustAdvertise(t, n, p, predicted.Resources)
				for i, pod := range pods {
					mustMatchPrediction(t, n, pod, predicted.Pods[i])
				}
			})
		}
	}
}

// sameReason reports whether the kubelet refuses a pod for the reason that simulate predicts.
// simulate also predicts the scheduler, which never sends a pod to a kubelet without enough
// free devices.
func sameReason(resource, kubelet, predicted string) bool {
	insufficient := strings.Contains(kubelet, "requested number of devices unavailable") ||
		strings.Contains(kubelet, "no healthy devices present")
	if insufficient {
		return strings.Contains(predicted, "Insufficient "+resource)
	}
	// simulate predicts the default of Windows, where the kubelet allocates when it creates a
	// container; here it allocates when it admits the pod.
	return strings.Contains(kubelet, strings.TrimPrefix(predicted, "CreateContainerConfigError: "))
}

// podsToExhaustion returns pods for each resource: some that request one device, one that
// requests one more than is free, and one that requests all free devices.
func podsToExhaustion(resources []predictedResource) []request {
	const singles = 3
	var pods []request
	for _, resource := range resources {
		ask := func(count int64) {
			pods = append(pods, request{fmt.Sprintf("pod-%d", len(pods)), resource.Name, count})
		}
		left := resource.Allocatable
		for ; left > 0 && left > resource.Allocatable-singles; left-- {
			ask(1)
		}
		ask(left + 1)
		if left > 0 {
			ask(left)
		}
	}
	return pods
}

// mustAdvertise waits until the node reports exactly the predicted devices.
func mustAdvertise(t *testing.T, n *node, p *plugin, predicted []predictedResource) {
	t.Helper()
	names := []string{}
	for _, resource := range predicted {
		took := eventually(t, p, resource.Name, devices(resource.Capacity, resource.Allocatable),
			func() count { return n.count(resource.Name) })
		t.Logf("%s: %v after %v", resource.Name, devices(resource.Capacity, resource.Allocatable), took)
		if healthy := n.healthyIDs(resource.Name); !slices.Equal(healthy, resource.healthyIDs()) {
			t.Errorf("%s: the kubelet reports the devices %q, simulate predicts %q", resource.Name, healthy, resource.healthyIDs())
		}
		names = append(names, resource.Name)
	}
	slices.Sort(names)
	if known := n.resourceNames(); !slices.Equal(known, names) {
		t.Errorf("the kubelet reports the resources %q, simulate predicts %q", known, names)
	}
}

// healthyIDs returns the ids of the healthy devices, sorted.
func (r predictedResource) healthyIDs() []string {
	ids := []string{}
	for _, device := range r.Devices {
		if device.Health == "Healthy" {
			ids = append(ids, device.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// mustMatchPrediction admits a pod and fails unless the result and the container options
// match the prediction.
func mustMatchPrediction(t *testing.T, n *node, requested request, predicted predictedPod) {
	t.Helper()
	if predicted.Name != requested.name || predicted.Resource != requested.resource || predicted.Count != requested.count {
		t.Fatalf("simulate was run for %+v and returned %+v", requested, predicted)
	}
	pod := podFor(requested.name, requested.resource, requested.count)
	result := n.admit(pod)
	if result.Admit != predicted.Admitted {
		t.Errorf("%+v: admitted by the kubelet: %v (%s), by simulate: %v (%s)",
			requested, result.Admit, result.Message, predicted.Admitted, predicted.Reason)
		return
	}
	if !result.Admit {
		if !sameReason(requested.resource, result.Message, predicted.Reason) {
			t.Errorf("%+v: the kubelet gives the reason %q, simulate %q", requested, result.Message, predicted.Reason)
		}
		return
	}
	slices.Sort(predicted.DeviceIDs)
	if got := n.deviceIDs(pod); !slices.Equal(got, predicted.DeviceIDs) {
		t.Errorf("%+v: the kubelet allocates %q, simulate %q", requested, got, predicted.DeviceIDs)
	}
	if predicted.Container == nil {
		t.Errorf("%+v: simulate predicts no container for an admitted pod", requested)
		return
	}
	mustEqual(t, requested.name, n.container(pod), onThisMachine(*predicted.Container))
}
