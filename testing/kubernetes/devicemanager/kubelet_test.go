package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// machineNodes returns NUMA nodes in cadvisor's type.
func machineNodes[Node any](ids []int) []Node {
	nodes := make([]Node, len(ids))
	for i, id := range ids {
		if err := json.Unmarshal(fmt.Appendf(nil, `{"node_id": %d}`, id), &nodes[i]); err != nil {
			panic(err) // only a number in the text varies
		}
	}
	return nodes
}

// allUnhealthy is the message for a pod that requests one device of a resource without
// healthy devices.
func allUnhealthy(resource string) string {
	return refusal("no healthy devices present; cannot allocate unhealthy devices " + resource)
}

// unhealthySinceAllocation is the message for a pod whose devices became unhealthy after
// they were allocated to it.
func unhealthySinceAllocation(resource string) string {
	return refusal("previously allocated devices are no longer healthy; cannot allocate unhealthy devices " + resource)
}

// deviceIDs returns the ids of the devices that are allocated to a container, in any order.
func (k *kubelet) deviceIDs(pod *v1.Pod, container string) []string {
	ids := []string{}
	for _, devices := range k.devices.GetDevices(string(pod.UID), container) {
		ids = slices.AppendSeq(ids, maps.Keys(devices))
	}
	return ids
}
