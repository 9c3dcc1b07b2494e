package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namespace = "default"
	// mainContainer is the name of the container that requests devices.
	mainContainer = "main"
)

// podSpec is a container that requests GPUs, on this node if the scheduler finds that they fit.
func (n *node) podSpec(amount int64) v1.PodSpec { return n.podSpecOf(display, amount) }

// podSpecOf is a container that requests devices of a resource.
func (n *node) podSpecOf(name v1.ResourceName, amount int64) v1.PodSpec {
	limits := v1.ResourceList{}
	if amount > 0 {
		limits[name] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	no := false
	grace := int64(1)
	return v1.PodSpec{
		NodeSelector: map[string]string{v1.LabelHostname: n.name},
		Containers: []v1.Container{{
			Name: mainContainer, Image: "example.com/image", Resources: v1.ResourceRequirements{Limits: limits},
		}},
		AutomountServiceAccountToken:  &no,
		TerminationGracePeriodSeconds: &grace,
	}
}

// create creates a pod that requests devices. Its name is unique in the cluster.
func (n *node) create(name string, amount int64) pod {
	n.t.Helper()
	return n.createSpec(name, n.podSpec(amount))
}

func (n *node) createSpec(name string, spec v1.PodSpec) pod {
	n.t.Helper()
	p := pod{n.t, n.name + "-" + name}
	p.create(spec)
	return p
}

// pod is a pod of a test.
type pod struct {
	t    *testing.T
	name string
}

func (p pod) create(spec v1.PodSpec) {
	p.t.Helper()
	object := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: spec}
	if _, err := api.CoreV1().Pods(namespace).Create(context.Background(), object, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func (p pod) object() *v1.Pod {
	p.t.Helper()
	object, err := api.CoreV1().Pods(namespace).Get(context.Background(), p.name, metav1.GetOptions{})
	if err != nil {
		return &v1.Pod{}
	}
	return object
}

func (p pod) delete() {
	p.t.Helper()
	if err := api.CoreV1().Pods(namespace).Delete(context.Background(), p.name, metav1.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// mustRun waits until the kubelet reports that the pod runs. The kubelet judges a pod by its own copy of
// the node, which may be older than the scheduler's, and then refuses it. The pod is then created again,
// once, as its controller would do.
func (p pod) mustRun() pod {
	p.t.Helper()
	isReplaced := false
	eventually(p.t, "pod "+p.name, "Running", func() string {
		state := p.state()
		if !isReplaced && isOutOfDevices(state) {
			isReplaced = true
			p.replace()
		}
		return state
	})
	return p
}

// replace creates the pod again.
func (p pod) replace() {
	p.t.Helper()
	refused := p.object()
	p.delete()
	eventually(p.t, "pod "+p.name+" is gone", true, func() bool { return p.object().UID != refused.UID })
	refused.Spec.NodeName = ""
	p.create(refused.Spec)
}

// isOutOfDevices says that the kubelet has refused the pod with this state.
func isOutOfDevices(state string) bool { return strings.HasPrefix(state, "Failed (OutOf") }

// mustWait waits until the scheduler has found no node, for this reason.
func (p pod) mustWait(reason string) pod {
	p.t.Helper()
	eventually(p.t, "pod "+p.name, true, func() bool {
		object := p.object()
		for _, condition := range object.Status.Conditions {
			if condition.Type == v1.PodScheduled && condition.Reason == v1.PodReasonUnschedulable {
				return strings.Contains(condition.Message, reason)
			}
		}
		return false
	})
	return p
}

// state is Running for a pod whose container runs, and otherwise its phase with the reason.
func (p pod) state() string {
	status := p.object().Status
	if status.Phase == v1.PodRunning && (len(status.ContainerStatuses) == 0 || status.ContainerStatuses[0].State.Running == nil) {
		return "starting"
	}
	if status.Reason != "" {
		return fmt.Sprintf("%s (%s)", status.Phase, status.Reason)
	}
	return string(status.Phase)
}

// waiting is the reason and the message of a container that waits.
func (p pod) waiting() string {
	status := p.object().Status
	if len(status.ContainerStatuses) == 0 || status.ContainerStatuses[0].State.Waiting == nil {
		return "not waiting"
	}
	waiting := status.ContainerStatuses[0].State.Waiting
	return waiting.Reason + ": " + waiting.Message
}

// incarnation tells one start of the pod's container from another.
func (p pod) incarnation() string {
	status := p.object().Status
	if len(status.ContainerStatuses) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, %d restarts", status.ContainerStatuses[0].ContainerID, p.restarts())
}

func (p pod) restarts() int {
	status := p.object().Status
	if len(status.ContainerStatuses) == 0 {
		return 0
	}
	return int(status.ContainerStatuses[0].RestartCount)
}
