package kubelet

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// containerOptions is what a container runtime gets for a container's devices, in the form
// of `directx-device-plugin simulate --output json`.
type containerOptions struct {
	Devices     []deviceOption    `json:"devices"`
	Mounts      []mountOption     `json:"mounts"`
	Envs        map[string]string `json:"envs"`
	Annotations map[string]string `json:"annotations"`
	CDIDevices  []string          `json:"cdiDevices,omitempty"`
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

// optionsFromKubelet returns what a container runtime gets. Devices and mounts are
// in the kubelet's order; environment and annotations have no order.
func optionsFromKubelet(options *devicemanager.DeviceRunContainerOptions) containerOptions {
	result := emptyOptions()
	if options == nil {
		return result
	}
	for _, device := range options.Devices {
		result.Devices = append(result.Devices, deviceOption{device.PathOnHost, device.PathInContainer, device.Permissions})
	}
	for _, mount := range options.Mounts {
		result.Mounts = append(result.Mounts, mountOption{mount.HostPath, mount.ContainerPath, mount.ReadOnly})
	}
	for _, env := range options.Envs {
		result.Envs[env.Name] = env.Value
	}
	for _, annotation := range options.Annotations {
		result.Annotations[annotation.Name] = annotation.Value
	}
	result.CDIDevices = cdiDevices(options)
	return result
}

func emptyOptions() containerOptions {
	return containerOptions{[]deviceOption{}, []mountOption{}, map[string]string{}, map[string]string{}, nil}
}

// merged returns o after the kubelet has added the options of another resource. Of several
// entries with the same container path or name, the first one remains.
func (o containerOptions) merged(further containerOptions) containerOptions {
	result := emptyOptions()
	devices, mounts := map[string]bool{}, map[string]bool{}
	for _, part := range []containerOptions{o, further} {
		for _, device := range part.Devices {
			if !devices[device.ContainerPath] {
				devices[device.ContainerPath] = true
				result.Devices = append(result.Devices, device)
			}
		}
		for _, mount := range part.Mounts {
			if !mounts[mount.ContainerPath] {
				mounts[mount.ContainerPath] = true
				result.Mounts = append(result.Mounts, mount)
			}
		}
		addMissing(result.Envs, part.Envs)
		addMissing(result.Annotations, part.Annotations)
	}
	return result
}

func addMissing(into, from map[string]string) {
	for name, value := range from {
		if _, taken := into[name]; !taken {
			into[name] = value
		}
	}
}

// text returns a text that is equal if and only if the options are equal.
func (o containerOptions) text() string {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // strings and booleans can always be encoded
	}
	return string(text)
}

// onThisMachine returns what the plugin passes of a prediction on the machine of the test: a runtime creates a folder in the place
// of a file that does not exist. Only Windows has directx-visible, and there only files of the machine are passed.
func onThisMachine(predicted containerOptions) containerOptions {
	predicted.Mounts = slices.DeleteFunc(slices.Clone(predicted.Mounts), func(mount mountOption) bool {
		if runtime.GOOS != "windows" {
			return strings.Contains(mount.HostPath, `\simulated\`)
		}
		file, err := os.Stat(mount.HostPath)
		return err != nil || !file.Mode().IsRegular()
	})
	return predicted
}

// mustEqual fails unless a container gets the predicted options.
func mustEqual(t *testing.T, pod string, kubelet, predicted containerOptions) {
	t.Helper()
	if kubelet.text() != predicted.text() {
		t.Errorf("pod %s: the kubelet passes\n%s\nexpected\n%s", pod, kubelet.text(), predicted.text())
	}
}
