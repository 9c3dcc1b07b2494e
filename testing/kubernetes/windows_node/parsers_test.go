package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRuntimeConditions(t *testing.T) {
	const info = `{"config": {"containerdRootDir": "C:\\windows-node\\containerd\\root"}, "golang": "go1.26.8", "status": {"conditions": [
		{"message": "", "reason": "", "status": true, "type": "RuntimeReady"},
		{"message": "{...}", "reason": "ContainerdHasDeprecationWarnings", "status": false, "type": "ContainerdHasNoDeprecationWarnings"},
		{"message": "Network plugin returns error: cni plugin not initialized", "reason": "NetworkPluginNotReady", "status": false, "type": "NetworkReady"}]}}`
	ready, err := runtimeReady(info)
	if ready || err == nil || !strings.Contains(err.Error(), "cni plugin not initialized") {
		t.Error(ready, err)
	}
	ready, err = runtimeReady(strings.Replace(info, `false, "type": "NetworkReady"`, `true, "type": "NetworkReady"`, 1))
	if !ready || err != nil {
		t.Error(ready, err)
	}
	for _, text := range []string{"", "{}", `{"status": {"conditions": [{"type": "RuntimeReady", "status": true}]}}`} {
		if ready, _ := runtimeReady(text); ready {
			t.Errorf("%q is ready", text)
		}
	}
}

func TestPodsOfTheKubelet(t *testing.T) {
	const list = `{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
		{"metadata": {"name": "device-windows-node", "namespace": "default"}, "spec": {"nodeName": "windows-node"}, "status": {"phase": "Running", "containerStatuses": [
			{"name": "main", "state": {"running": {"startedAt": "2026-11-23T05:00:00Z"}}, "restartCount": 2, "containerID": "containerd://0123abcd"}]}},
		{"metadata": {"name": "waiting-windows-node"}, "spec": {"nodeName": "windows-node"}, "status": {"phase": "Pending", "containerStatuses": [
			{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "containerID": "containerd://ended"}]}},
		{"metadata": {"name": "over-capacity-windows-node"}, "spec": {"nodeName": "windows-node"}, "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no"}}]}`
	pods, err := parsePods(list)
	must(t, err)
	wanted := map[string]podStatus{
		"device": {phase: "Running", container: "0123abcd"}, "waiting": {phase: "Pending"},
		"over-capacity": {phase: "Failed", reason: "UnexpectedAdmissionError", message: "no"},
	}
	if !maps.Equal(pods, wanted) {
		t.Errorf("%+v", pods)
	}
	for _, text := range []string{"", "Unauthorized", `{"kind": "Status"}`} {
		if _, err := parsePods(text); err == nil {
			t.Errorf("%q is a list of pods", text)
		}
	}
}

func TestStatusOfThePlugin(t *testing.T) {
	const ready = `{"ready": true, "live": true, "resources": [{"name": "directx.microsoft.com/display", "ready": true, "state": "ready", "waitingMs": 0, "lastError": ""}]}`
	must(t, parseStatus(ready))
	for _, text := range []string{
		"", strings.Replace(ready, "display", "compute", 1), strings.ReplaceAll(ready, `"ready": true`, `"ready": false`),
		`{"ready": true, "live": true, "resources": []}`,
	} {
		if parseStatus(text) == nil {
			t.Errorf("%q is ready", text)
		}
	}
}

func TestOutputOfContainers(t *testing.T) {
	found := parseOutput("check folder yes \r\ncheck write no\r\nDIRECTX_DEVICE_0_NAME=a = b\r\nok        dxgi    check\r\nPATH=C:\\x\r\ncheck launcher -1073741515\r\n")
	if !maps.Equal(found.checks, checks{"folder": "yes", "write": "no", "launcher": "-1073741515"}) {
		t.Errorf("%v", found.checks)
	}
	if !maps.Equal(found.variables, map[string]string{"DIRECTX_DEVICE_0_NAME": "a = b"}) {
		t.Errorf("%v", found.variables)
	}
}

func TestChecksOfPods(t *testing.T) {
	device := checks{"folder": "yes", "file": "yes", "write": "no"}
	must(t, device.mustHaveDevice(false))
	for _, broken := range []checks{{"folder": "no"}, {"file": "no"}, {"write": "yes"}} {
		found := maps.Clone(device)
		maps.Copy(found, broken)
		mustFail(t, found.mustHaveDevice(false), "the container does not see what it should")
	}
	must(t, checks{"folder": "yes", "file": "no", "write": "yes"}.mustHaveDevice(true))
	mustFail(t, checks{"folder": "no"}.mustHaveDevice(true), "the container does not see what it should")
}

func TestExitCodesOfTheLauncher(t *testing.T) {
	for _, test := range []struct {
		launcher, child string
		works, live     bool
	}{
		{"0", "7", true, true},
		{"121", "121", true, false},
		// Without functions that list devices.
		{"1", "7", true, false},
		// Not found, a folder in the place of the program, without its filter, and without a library.
		{"9009", "9009", false, false},
		{"1", "1", false, false},
		{"121", "7", false, false},
		{"122", "7", false, false},
		{"0", "122", false, false},
		{"-1073741515", "7", false, false},
		{"", "", false, false},
	} {
		found := checks{"launcher": test.launcher, "child": test.child}
		for live, works := range map[bool]bool{false: test.works, true: test.live} {
			if err := found.mustRunLauncher(live); (err == nil) != works {
				t.Errorf("%v, live %v: %v", found, live, err)
			}
		}
	}
}

func TestContainersEqualThePrediction(t *testing.T) {
	const prediction = `{"pods": [{"resource": "directx.microsoft.com/compute", "admitted": false}, {"resource": "directx.microsoft.com/display", "admitted": true, "container": {
		"devices": [{"hostPath": "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599"}],
		"mounts": [{"hostPath": "C:\\a\\b.dll", "containerPath": "C:\\Windows\\System32\\b.dll", "readOnly": true}],
		"envs": {"DIRECTX_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "GPU-1"}}}, {"resource": "directx.microsoft.com/display", "admitted": false}]}`
	wanted, err := parsePrediction(prediction)
	must(t, err)
	n := &node{wanted: wanted}
	if len(wanted) != 1 {
		t.Fatalf("%+v", wanted)
	}
	_, err = n.predictionFor(map[string]string{"DIRECTX_VISIBLE_DEVICES": "1"})
	must(t, err)
	_, err = n.predictionFor(map[string]string{"DIRECTX_VISIBLE_DEVICES": "2"})
	mustFail(t, err, "the variables of the container differ from those of `simulate`")
	// What containerd 2.3 prints with crictl 1.36.
	const inspected = `{"status": {"state": "CONTAINER_RUNNING"}, "info": {"pid": 4711, "config": {
		"metadata": {"name": "main"}, "envs": [{"key": "DIRECTX_VISIBLE_DEVICES", "value": "MQ=="}],
		"devices": [{"host_path": "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599"}],
		"mounts": [{"container_path": "C:\\Windows\\System32\\b.dll", "host_path": "C:\\a\\b.dll", "readonly": true},
			{"container_path": "C:\\Windows\\System32\\drivers\\etc\\hosts", "host_path": "C:\\windows-node\\kubelet\\pods\\1\\etc-hosts"},
			{"container_path": "C:\\windows-node", "host_path": "C:\\programs", "readonly": true}]}}}`
	for from, same := range map[string]bool{
		"": true, "class/5B45201D-F2F2-4F3B-85BB-30FF1F953599": false, `"readonly": true}`: false, `b.dll", "host_path": "C:\\a\\b.dll`: false,
	} {
		var got inspection
		must(t, json.Unmarshal([]byte(strings.Replace(inspected, from, map[string]string{`"readonly": true}`: `"readonly": false}`}[from], 1)), &got))
		if err := wanted[0].mustEqual(got); (err == nil) != same {
			t.Errorf("without %q: %v", from, err)
		}
	}
}

// containerd creates a folder in the place of a file that does not exist, and the pod starts with it.
func TestFilesOfThePredictionMustExist(t *testing.T) {
	n := newNode(t)
	driver := filepath.Join(n.folder, "driver.dll")
	visible := n.onDrive("visible")
	const name = "directx-visible.exe"
	write(t, filepath.Join(n.programs, name), "of this version")
	predict := func() {
		n.wanted = make([]containerOptions, 1)
		text := `{"mounts": [{"hostPath": "driver"}, {"hostPath": "launcher"}]}`
		must(t, json.Unmarshal([]byte(text), &n.wanted[0]))
		n.wanted[0].Mounts[0].HostPath, n.wanted[0].Mounts[1].HostPath = driver, visible+simulated+name
	}
	for _, folder := range []string{driver, filepath.Join(visible, "1"), filepath.Join(visible, "2", name)} {
		must(t, os.MkdirAll(folder, 0o755))
	}
	predict()
	mustFail(t, n.mustHaveFiles(), "a file that containers will get is missing")
	must(t, os.Remove(driver))
	write(t, driver, "")
	write(t, filepath.Join(visible, "1", name), "of another version")
	mustFail(t, n.mustHaveFiles(), "the plugin has not provided directx-visible")
	provided := filepath.Join(visible, "2", name)
	must(t, os.Remove(provided))
	write(t, provided, "of this version")
	must(t, n.mustHaveFiles())
	if found := n.wanted[0].Mounts[1].HostPath; found != provided {
		t.Errorf("the prediction has %s", found)
	}
	must(t, os.Remove(provided))
	mustFail(t, n.mustHaveFiles(), "a file that containers will get is missing")
}
