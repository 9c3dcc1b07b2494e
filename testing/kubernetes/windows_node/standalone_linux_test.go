package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"directx-device-plugin/testing/kubernetes/loopback"
	"directx-device-plugin/testing/kubernetes/programs"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The steps that need a kubelet, with the real one, Kubernetes' fake runtime and the real plugin.
// The kubelet has no API server and the configuration for Windows, and runs the manifests for
// Windows; only their operating system differs.
func TestKubeletWithoutAPIServer(t *testing.T) {
	n := newStandaloneNode(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	defer func() {
		must(t, n.clean(ctx))
		if t.Failed() {
			for _, name := range []string{"kubelet", "plugin"} {
				text, _ := os.ReadFile(filepath.Join(n.logs, name+".log"))
				t.Logf("%s.log:\n%s", name, tail(string(text)))
			}
		}
	}()
	must(t, writeJSON(n.inventory(), madeUpInventory(`C:\Windows\System32\DriverStore\FileRepository\test.inf_amd64_1`, "test.dll")))
	// What pods of nanoserver get on Windows.
	_, err := n.predict(ctx, onWindows().configuration())
	must(t, err)
	launcher := false
	for _, mount := range n.wanted[0].Mounts {
		launcher = launcher || strings.Contains(mount.HostPath, simulated)
		if strings.Contains(mount.ContainerPath, "SysWOW64") {
			t.Errorf("nanoserver has no folder for %s", mount.ContainerPath)
		}
	}
	if !launcher {
		t.Errorf("pods get no directx-visible: %+v", n.wanted)
	}
	_, err = n.predict(ctx, n.configuration())
	must(t, err)
	_, err = n.startKubelet(ctx)
	must(t, err)

	t.Run("pods with devices wait for the plugin", func(t *testing.T) {
		mustFail(t, n.addDevicePod(ctx, "early", 1), "the plugin is not registered; a pod would start without its device")
	})
	// This also pulls the image for the others, which must be on the node.
	t.Run("without plugin a pod starts without its device", func(t *testing.T) {
		pod := n.pod("early", 1)
		pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["imagePullPolicy"] = "IfNotPresent"
		must(t, n.addPod("early", pod))
		_, err := n.mustHaveDevice(ctx, "early", runs)
		mustFail(t, err, "the pod started without its device")
		must(t, n.removePod(ctx, "early"))
	})
	steps := n.steps()
	first := slices.IndexFunc(steps, func(s step) bool { return s.name == "registration" })
	for _, s := range steps[first:] {
		// An informative step is about Windows.
		if s.unless != "" || s.informative {
			continue
		}
		measured, err := s.run(ctx)
		t.Logf("%s: %v", s.name, measured)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if s.name == "capacity" && !slices.Equal(measured, []string{"reason=UnexpectedAdmissionError"}) {
			t.Errorf("the pod over capacity has %v", measured)
		}
	}
}

// programVariable has the arguments of a test for its programs, and so marks a process as one.
const programVariable = "WINDOWS_NODE_PROGRAM"

// The node's programs have other names and options on Linux. The test program is all of them: a
// link to it has the name.
func TestMain(m *testing.M) {
	pollPeriod = 10 * time.Millisecond
	words := strings.Fields(os.Getenv(programVariable))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	name := filepath.Base(os.Args[0])
	var err error
	if name == "crictl" {
		// --runtime-endpoint ENDPOINT --timeout TIME
		err = askRuntime(filepath.Join(words[2], "nodes", nodeName), os.Args[5:])
	} else {
		err = become(name, words, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newStandaloneNode returns a node on which the kubelet, the runtime and the plugin are real.
func newStandaloneNode(t *testing.T) *node {
	t.Helper()
	program, err := programs.Find("directx-device-plugin")
	must(t, err)
	controlPlane, err := programs.Build("control-plane-of-one-node", "../control_plane", "")
	must(t, err)
	// The path of a socket has 107 bytes at most.
	cluster, err := os.MkdirTemp("", "node-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(cluster) })
	t.Setenv(programVariable, strings.Join([]string{program, controlPlane, cluster}, " "))
	n := &node{platform: platform{os: "linux", build: 20348, drive: filepath.Join(cluster, "drive")}, image: "example.com/image"}
	n.folder = filepath.Join(cluster, "nodes", nodeName)
	n.programs, n.logs, n.log = n.onDrive("programs"), n.onDrive("logs"), testLog{t}
	for _, folder := range []string{n.folder, n.programs, n.logs} {
		must(t, os.MkdirAll(folder, 0o755))
	}
	for _, name := range []string{"directx-visible.exe", "directx-visible-filter.dll"} {
		must(t, os.WriteFile(filepath.Join(n.programs, name), nil, 0o644))
	}
	self, err := os.Executable()
	must(t, err)
	n.paths = map[string]string{}
	for _, name := range []string{"plugin", "kubelet", "runtime", "crictl"} {
		n.paths[name] = n.onDrive(name)
		must(t, os.Symlink(self, n.paths[name]))
	}
	n.endpoint = "unix://" + runtimeSocket(n.folder)
	for _, port := range []*int{&n.ports.server, &n.ports.readOnly} {
		*port, err = loopback.FreePort()
		must(t, err)
	}
	runtime, err := n.start("runtime")
	must(t, err)
	t.Cleanup(runtime.kill)
	return n
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustFail(t *testing.T, err error, what string) {
	t.Helper()
	var known *problem
	if !errors.As(err, &known) || known.what != what {
		t.Fatalf("%v, expected %q", err, what)
	}
}

func runtimeSocket(folder string) string { return filepath.Join(folder, "runtime.sock") }

// become replaces this process by the real program.
func become(name string, words, arguments []string) error {
	program, controlPlane, cluster := words[0], words[1], words[2]
	folder := filepath.Join(cluster, "nodes", nodeName)
	command := []string{controlPlane, name, "--folder", cluster, "--node", nodeName}
	switch {
	case name == "kubelet":
		command = append(command, "--standalone", arguments[1])
	case name == "plugin":
		command = append([]string{program}, arguments...)
		if arguments[0] != "simulate" {
			command = append(command, "--device-plugin-dir", filepath.Join(folder, "device-plugins"))
		}
	}
	if os.Getuid() != 0 && name != "plugin" {
		command = append([]string{"/usr/bin/unshare", "--user", "--map-root-user"}, command...)
	}
	return syscall.Exec(command[0], command, os.Environ())
}

// recorded is what the fake runtime was asked for, and writes as JSON.
type recorded struct {
	Devices []struct{ HostPath string }
	Mounts  []struct {
		HostPath, ContainerPath string
		ReadOnly                bool
	}
	Envs []struct {
		Key   string
		Value []byte
	}
}

// askRuntime answers as crictl does on Windows, for containers of the fake runtime, which runs
// nothing.
func askRuntime(folder string, arguments []string) error {
	id := arguments[len(arguments)-1]
	if arguments[0] == "stop" {
		connection, err := grpc.NewClient("unix:"+runtimeSocket(folder), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		_, err = v1.NewRuntimeServiceClient(connection).StopContainer(context.Background(), &v1.StopContainerRequest{ContainerId: id})
		return err
	}
	pod, _, _ := strings.Cut(id, "_")
	text, err := os.ReadFile(filepath.Join(folder, "containers", "default_"+pod+"_main.json"))
	if err != nil {
		return err
	}
	var r recorded
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if arguments[0] == "inspect" {
		return json.NewEncoder(os.Stdout).Encode(r.inspection())
	}
	r.printChecks()
	return nil
}

func (r recorded) inspection() inspection {
	var found inspection
	found.Status.State = "CONTAINER_RUNNING"
	for _, device := range r.Devices {
		found.Info.Config.Devices = append(found.Info.Config.Devices, struct {
			HostPath string `json:"host_path"`
		}{device.HostPath})
	}
	for _, mount := range r.Mounts {
		found.Info.Config.Mounts = append(found.Info.Config.Mounts, hostMount(mount))
	}
	return found
}

// printChecks prints what the pod's script would print.
func (r recorded) printChecks() {
	device := "no"
	for _, env := range r.Envs {
		if strings.HasPrefix(env.Key, variablePrefix) {
			device = "yes"
			fmt.Printf("%s=%s\r\n", env.Key, env.Value)
		}
	}
	if device == "no" {
		fmt.Println("check device no")
		return
	}
	folder, file := "no", "no"
	if len(r.Devices) == 1 && r.Devices[0].HostPath == displayClass {
		folder = "yes"
	}
	for _, mount := range r.Mounts {
		if mount.ContainerPath == mountedFile && mount.ReadOnly {
			file = "yes"
		}
	}
	fmt.Printf("check folder %s\ncheck file %s\ncheck write no\ncheck launcher 121\ncheck child 121\ncheck done yes\n", folder, file)
}
