package kubelet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// variants are the ways in which every recorded host is offered.
var variants = []struct {
	name         string
	config       string
	driverModels []string
}{
	{name: "as configured by default"},
	{name: "shared by four", config: "multitenancy: 4"},
	{name: "shared by four, packed", config: "multitenancy: 4\nallocationPolicy: packed"},
	{name: "one device a container", config: "multitenancy: 4\nmultiDevice: reject"},
	{name: "with runtime files", config: "runtimeMounts: always"},
	{name: "without runtime files", config: "runtimeMounts: never"},
	{name: "without hints", config: "environmentHints: false"},
	{name: "displays only", driverModels: []string{"wddm"}},
	{name: "as the plugin of 2019", driverModels: []string{"legacy"}},
}

// TestPredictionsHold compares, for every recorded host, what `simulate` predicts
// with what the kubelet does: the resources, their counts, which pods are admitted,
// with which devices, and what their containers get.
func TestPredictionsHold(t *testing.T) {
	for _, fixture := range fixtures(t) {
		for _, variant := range variants {
			t.Run(fixture+"/"+variant.name, func(t *testing.T) {
				journal.start(t)
				common := arguments{fixturePath(fixture), writeConfig(t, variant.config), variant.driverModels}
				pods := podsThatFillUp(simulate(t, common, nil).Resources)
				predicted := simulate(t, common, pods)
				n := startNode(t)
				p := startPlugin(t, common)
				mustOffer(t, n, p, predicted.Resources)
				for i, pod := range pods {
					compare(t, n, pod, predicted.Pods[i])
				}
			})
		}
	}
}

// sameReason says whether a pod is refused for the reason that simulate gives. A pod
// for which there is no room never reaches a kubelet, because the scheduler, which
// simulate has too, keeps it.
func sameReason(resource, kubelet, predicted string) bool {
	noRoom := strings.Contains(kubelet, "requested number of devices unavailable") ||
		strings.Contains(kubelet, "no healthy devices present")
	if noRoom {
		return strings.Contains(predicted, "Insufficient "+resource)
	}
	return strings.Contains(predicted, kubelet)
}

// podsThatFillUp ask for each resource: some for one device, one for all that is
// left, and one for one too many.
func podsThatFillUp(resources []predictedResource) []request {
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

// mustOffer waits until the node has exactly the predicted devices.
func mustOffer(t *testing.T, n *node, p *plugin, predicted []predictedResource) {
	t.Helper()
	names := []string{}
	for _, resource := range predicted {
		took := eventually(t, p, resource.Name, devices(resource.Capacity, resource.Allocatable),
			func() count { return n.count(resource.Name) })
		t.Logf("%s: %v after %v", resource.Name, devices(resource.Capacity, resource.Allocatable), took)
		if healthy := n.healthyIDs(resource.Name); !slices.Equal(healthy, resource.healthyIDs()) {
			t.Errorf("%s: the kubelet has the devices %q, simulate predicts %q", resource.Name, healthy, resource.healthyIDs())
		}
		names = append(names, resource.Name)
	}
	slices.Sort(names)
	if known := n.resourceNames(); !slices.Equal(known, names) {
		t.Errorf("the kubelet has the resources %q, simulate predicts %q", known, names)
	}
}

// healthyIDs are the ids of the healthy devices, sorted.
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

// compare admits a pod and fails unless its fate and its container are as predicted.
func compare(t *testing.T, n *node, asked request, predicted predictedPod) {
	t.Helper()
	if predicted.Name != asked.name || predicted.Resource != asked.resource || predicted.Count != asked.count {
		t.Fatalf("simulate was asked for %+v and answers for %+v", asked, predicted)
	}
	pod := podFor(asked.name, asked.resource, asked.count)
	result := n.admit(pod)
	if result.Admit != predicted.Admitted {
		t.Errorf("%+v: the kubelet admits it: %v (%s), simulate: %v (%s)",
			asked, result.Admit, result.Message, predicted.Admitted, predicted.Reason)
		return
	}
	if !result.Admit {
		if !sameReason(asked.resource, result.Message, predicted.Reason) {
			t.Errorf("%+v: the kubelet says %q, simulate %q", asked, result.Message, predicted.Reason)
		}
		return
	}
	slices.Sort(predicted.DeviceIDs)
	if got := n.deviceIDs(pod); !slices.Equal(got, predicted.DeviceIDs) {
		t.Errorf("%+v: the kubelet allocates %q, simulate %q", asked, got, predicted.DeviceIDs)
	}
	if predicted.Container == nil {
		t.Errorf("%+v is admitted; simulate predicts no container", asked)
		return
	}
	mustEqual(t, asked.name, n.container(pod), *predicted.Container)
}
