package kubelet

import "fmt"

// refusal is the message of a pod that the device manager refused for this reason.
func refusal(reason string) string {
	return fmt.Sprintf("Allocate failed due to %s, which is unexpected", reason)
}

// tooMany is the message of a pod that asks for more than is free.
func tooMany(resource string, requested, available int) string {
	return refusal(fmt.Sprintf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, requested, available))
}
