package kubelet

import "fmt"

// refusal is the message for a pod that the device manager refuses for this reason.
func refusal(reason string) string {
	return fmt.Sprintf("Allocate failed due to %s, which is unexpected", reason)
}

// tooMany is the message for a pod that requests more devices than are free.
func tooMany(resource string, requested, available int) string {
	return refusal(fmt.Sprintf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, requested, available))
}
