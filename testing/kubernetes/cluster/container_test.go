package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// containerOptions is what a container runtime gets for a container's devices, in the form of
// `directx-device-plugin simulate --output json`.
type containerOptions struct {
	Devices     []deviceOption    `json:"devices"`
	Mounts      []mountOption     `json:"mounts"`
	Envs        map[string]string `json:"envs"`
	Annotations map[string]string `json:"annotations"`
}

type deviceOption struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	Permissions   string `json:"permissions"`
}

type mountOption struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly"`
}

// recorded is the configuration of a container as the runtime received it (ContainerConfig of the
// CRI, in the JSON form of protocol buffers).
type recorded struct {
	Devices []deviceOption `json:"devices"`
	Mounts  []struct {
		mountOption
		// The CRI's name of the field differs in case.
		ReadOnlyField bool `json:"readonly"`
	} `json:"mounts"`
	Envs []struct {
		Key   string `json:"key"`
		Value []byte `json:"value"`
	} `json:"envs"`
	Annotations map[string]string `json:"annotations"`
}

func (n *node) recorded(p pod) recorded {
	n.t.Helper()
	name := namespace + "_" + p.name + "_" + mainContainer + ".json"
	text, err := os.ReadFile(filepath.Join(n.folder, "containers", name))
	if err != nil {
		n.t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		n.t.Fatalf("%v in %s", err, text)
	}
	return r
}

// container returns what the runtime received for the pod because of its devices: plain is a pod
// without devices, which the kubelet gives the rest, too.
func (n *node) container(p, plain pod) containerOptions {
	n.t.Helper()
	with, without := n.recorded(p), n.recorded(plain)
	options := containerOptions{[]deviceOption{}, []mountOption{}, map[string]string{}, map[string]string{}}
	options.Devices = append(options.Devices, with.Devices...)
	ordinary := map[string]bool{}
	for _, mount := range without.Mounts {
		ordinary[mount.ContainerPath] = true
	}
	for _, mount := range with.Mounts {
		if !ordinary[mount.ContainerPath] {
			options.Mounts = append(options.Mounts, mountOption{mount.HostPath, mount.ContainerPath, mount.ReadOnlyField})
		}
	}
	for _, env := range without.Envs {
		ordinary[env.Key] = true
	}
	for _, env := range with.Envs {
		if !ordinary[env.Key] {
			options.Envs[env.Key] = string(env.Value)
		}
	}
	for name, value := range with.Annotations {
		if _, ok := without.Annotations[name]; !ok {
			options.Annotations[name] = value
		}
	}
	return options
}

// text returns a text that is equal if and only if the options are equal.
func (o containerOptions) text() string {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // strings and booleans can always be encoded
	}
	return string(text)
}

// prediction is what `simulate --output json` prints.
type prediction struct {
	Resources []struct {
		Name        string `json:"name"`
		Capacity    int64  `json:"capacity"`
		Allocatable int64  `json:"allocatable"`
		Devices     []struct {
			ID     string `json:"id"`
			Health string `json:"health"`
		} `json:"devices"`
	} `json:"resources"`
	Pods []struct {
		Name      string           `json:"name"`
		Admitted  bool             `json:"admitted"`
		Reason    string           `json:"reason"`
		Container containerOptions `json:"container"`
	} `json:"pods"`
	Labels     map[string]string `json:"labels"`
	Conditions []struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"conditions"`
}

// conditions returns status and reason of the conditions, as [node.conditions] does.
func (p prediction) conditions() string {
	texts := []string{}
	for _, condition := range p.Conditions {
		texts = append(texts, condition.Status+" "+condition.Reason)
	}
	return strings.Join(texts, ", ")
}

// simulate returns the program's prediction for this node and these pods, `NAME=RESOURCE:COUNT`.
func (n *node) simulate(pods ...string) prediction {
	n.t.Helper()
	words := n.arguments()
	for _, pod := range pods {
		words = append(words, "--pod", pod)
	}
	return n.simulateWith(nil, words)
}

// simulateWith returns the program's prediction with these variables and options.
func (n *node) simulateWith(environment, arguments []string) prediction {
	n.t.Helper()
	command := exec.Command(plugin, append([]string{"simulate", "--output", "json"}, arguments...)...)
	command.Env = append(os.Environ(), environment...)
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	var result prediction
	// It exits with 1 if a pod is refused.
	if err == nil || command.ProcessState != nil && command.ProcessState.ExitCode() == 1 {
		err = json.Unmarshal(output, &result)
	}
	if err != nil {
		n.t.Fatalf("%v: %v\n%s", command, err, messages.String())
	}
	return result
}

// mustReceive fails unless the runtime received the predicted options for the pod.
func (n *node) mustReceive(t *testing.T, p, plain pod, predicted containerOptions) {
	t.Helper()
	if got := n.container(p, plain).text(); got != predicted.text() {
		t.Errorf("the runtime received for pod %s\n%s\nexpected\n%s", p.name, got, predicted.text())
	}
}
