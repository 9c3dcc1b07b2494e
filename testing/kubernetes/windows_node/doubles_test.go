package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stateVariable names the folder of a test's doubles.
const stateVariable = "WINDOWS_NODE_DOUBLES"

// doubles are programs that this program runs, by their names. The test program is all of them: a
// link to it has the name.
var doubles = map[string]func(state string, arguments []string) error{
	"sc": serviceDouble, "tasklist": tasklistDouble, "containerd": containerdDouble, "crictl": crictlDouble, "ctr": noDouble,
	"plugin": pluginDouble, "taskkill": taskkillDouble, "icacls": icaclsDouble,
}

func TestMain(m *testing.M) {
	pollPeriod = 10 * time.Millisecond
	state := os.Getenv(stateVariable)
	double := doubles[filepath.Base(os.Args[0])]
	if state == "" || double == nil {
		os.Exit(m.Run())
	}
	if err := double(state, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newNode returns a node whose programs are doubles.
func newNode(t *testing.T) *node {
	t.Helper()
	folder := t.TempDir()
	n := &node{
		platform:     platform{os: "windows", elevated: true, build: 20348, drive: filepath.Join(folder, "drive")},
		natInterface: "lo", endpoint: "unix:///nowhere",
	}
	n.folder = filepath.Join(folder, "windows-node")
	n.programs = n.onDrive("programs")
	n.paths, n.logs = map[string]string{}, n.onDrive("logs")
	n.log = testLog{t}
	for _, folder := range []string{n.programs, n.logs, n.state()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"directx-device-plugin.exe", "directx-visible.exe", "directx-visible-filter.dll"} {
		write(t, filepath.Join(n.programs, name), "")
	}
	t.Setenv(stateVariable, n.state())
	for name := range doubles {
		n.link(t, name)
	}
	n.set(t, "services", "vmcompute")
	return n
}

// state is the folder of the doubles.
func (n *node) state() string { return n.onDrive("doubles") }

func (n *node) link(t *testing.T, name string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.paths[name] = filepath.Join(n.state(), name)
	if err := os.Symlink(executable, n.paths[name]); err != nil {
		t.Fatal(err)
	}
}

// set makes the doubles behave differently.
func (n *node) set(t *testing.T, name, text string) {
	t.Helper()
	write(t, filepath.Join(n.state(), name+".txt"), text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// setting returns what a test has set, word by word.
func setting(state, name string) []string {
	text, _ := os.ReadFile(filepath.Join(state, name+".txt"))
	return strings.Fields(string(text))
}

type testLog struct{ t *testing.T }

func (l testLog) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

func noDouble(string, []string) error { return nil }

// containerdDouble adds its service to services.txt.
func containerdDouble(state string, _ []string) error {
	return writeServices(state, append(setting(state, "services"), serviceName))
}

func writeServices(state string, names []string) error {
	return os.WriteFile(filepath.Join(state, "services.txt"), []byte(strings.Join(names, " ")), 0o644)
}

// serviceDouble knows the services in services.txt. They run, except the one in stopped.txt.
func serviceDouble(state string, arguments []string) error {
	name := arguments[1]
	if !slices.Contains(setting(state, "services"), name) {
		fmt.Println("[SC] EnumQueryServicesStatus:OpenService FAILED 1060:")
		os.Exit(36)
	}
	started := filepath.Join(state, name+".started")
	if arguments[0] == "start" {
		if _, err := os.Stat(started); err == nil {
			return fmt.Errorf("[SC] StartService FAILED 1056:")
		}
		return os.WriteFile(started, nil, 0o644)
	}
	if arguments[0] == "delete" {
		return writeServices(state, slices.DeleteFunc(setting(state, "services"), func(known string) bool { return known == name }))
	}
	if arguments[0] == "stop" {
		_ = os.Remove(started)
		return os.WriteFile(filepath.Join(state, "stopped.txt"), []byte(name), 0o644)
	}
	running := "4  RUNNING"
	if _, err := os.Stat(started); slices.Contains(setting(state, "stopped"), name) || (name == pluginService && err != nil) {
		running = "1  STOPPED"
	}
	fmt.Printf("\nSERVICE_NAME: %s\n        TYPE               : 10  WIN32_OWN_PROCESS\n        STATE              : %s\n", name, running)
	exit, process := "0", "4711"
	if killed := setting(state, "killed"); len(killed) > 0 {
		process = "4712"
	}
	if slices.Contains(setting(state, "broken"), "stop") {
		exit = "1067"
	}
	fmt.Printf("        WIN32_EXIT_CODE    : %s  (0x0)\n        PID                : %s\n", exit, process)
	return nil
}

// taskkillDouble ends the process of a service, which Windows restarts.
func taskkillDouble(state string, arguments []string) error {
	if slices.Contains(setting(state, "broken"), "restart") {
		return nil
	}
	return os.WriteFile(filepath.Join(state, "killed.txt"), []byte(arguments[2]), 0o644)
}

// pluginDouble knows what the plugin does to services, and describes the host.
func pluginDouble(state string, arguments []string) error {
	switch strings.Join(arguments[:min(2, len(arguments))], " ") {
	case "service install":
		return writeServices(state, append(setting(state, "services"), pluginService))
	case "service uninstall":
		return writeServices(state, slices.DeleteFunc(setting(state, "services"), func(known string) bool { return known == pluginService }))
	case "status --output":
		fmt.Printf(`{"ready": true, "resources": [{"name": %q, "ready": true}]}`, display)
	case "doctor --output":
		fmt.Println("# doctor")
		return fmt.Errorf("1 failed")
	case "record --output":
		return os.WriteFile(arguments[2], []byte("schema: directx-inventory/v1"), 0o644)
	default:
		return fmt.Errorf("%v", arguments)
	}
	return nil
}

func tasklistDouble(state string, _ []string) error {
	processes := setting(state, "processes")
	if len(processes) == 0 {
		fmt.Println("INFO: No tasks are running which match the specified criteria.")
	}
	for _, name := range processes {
		fmt.Printf("%q,\"4711\",\"Services\",\"0\",\"60,000 K\"\n", name)
	}
	return nil
}

// crictlDouble runs nothing, and answers as containers on Windows should.
func crictlDouble(state string, arguments []string) error {
	// --runtime-endpoint ENDPOINT --timeout TIME
	arguments = arguments[4:]
	created := filepath.Join(state, "created.json")
	switch arguments[0] {
	case "info":
		fmt.Println(`{"status": {"conditions": [{"type": "RuntimeReady", "status": true}, {"type": "NetworkReady", "status": true}]}}`)
	case "pull":
		if slices.Contains(setting(state, "missing-images"), arguments[1]) {
			return fmt.Errorf("failed to pull and unpack image %q: not found", arguments[1])
		}
	case "runp":
		fmt.Println("pod-1")
	case "create":
		text, err := os.ReadFile(arguments[2])
		if err != nil {
			return err
		}
		fmt.Println("container-1")
		return os.WriteFile(created, text, 0o644)
	case "start":
		text, _ := os.ReadFile(created)
		if strings.Contains(string(text), "vpci-location-path") {
			return fmt.Errorf("hcs::CreateComputeSystem container-1: The specified device was not found")
		}
		for _, class := range setting(state, "refused-classes") {
			if strings.Contains(string(text), class) {
				return fmt.Errorf("hcs::CreateComputeSystem container-1: The parameter is incorrect")
			}
		}
	case "exec":
		return execDouble(state, arguments[3:])
	case "stop":
		for _, socket := range setting(state, "sockets") {
			if err := os.Remove(socket); err != nil {
				return err
			}
		}
	case "inspect":
		code := append(setting(state, "exit-code"), "0")[0]
		fmt.Printf(`{"status": {"state": "CONTAINER_EXITED", "exitCode": %s}, "info": {}}`, code)
	case "logs":
		if log, err := os.ReadFile(filepath.Join(state, "log.txt")); err == nil {
			fmt.Print(string(log))
			return nil
		}
		return printChecks(state, created)
	}
	return nil
}

// execDouble keeps a command for the plugin's container, after which its log has the lines in
// then.txt.
func execDouble(state string, command []string) error {
	executed, err := os.OpenFile(filepath.Join(state, "executed.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer executed.Close()
	if _, err := fmt.Fprintf(executed, "%q\n", command); err != nil {
		return err
	}
	lines, _ := os.ReadFile(filepath.Join(state, "then.txt"))
	log, err := os.OpenFile(filepath.Join(state, "log.txt"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = log.Write(lines)
	return err
}

// icaclsDouble keeps its arguments.
func icaclsDouble(state string, arguments []string) error {
	return os.WriteFile(filepath.Join(state, "icacls.txt"), fmt.Appendf(nil, "%q", arguments), 0o644)
}

// printChecks prints what a container does that was created with this configuration.
func printChecks(state, configuration string) error {
	text, err := os.ReadFile(configuration)
	if err != nil {
		return err
	}
	var c struct {
		Command []string
		Devices []struct {
			HostPath string `json:"host_path"`
		}
		Mounts  []hostMount
		Windows struct {
			SecurityContext struct {
				RunAsUsername string `json:"run_as_username"`
			} `json:"security_context"`
		}
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	answer := map[bool]string{false: "no", true: "yes"}
	class := len(c.Devices) == 1 && c.Devices[0].HostPath == displayClass && !slices.Contains(setting(state, "broken"), "class")
	mounted := len(c.Mounts) == 1 && c.Mounts[0].ContainerPath == mountedFile
	mounted32 := len(c.Mounts) == 1 && c.Mounts[0].ContainerPath == mountedFile32
	may := c.Windows.SecurityContext.RunAsUsername == administrator
	fmt.Printf("check folder %s \r\ncheck file %s \r\ncheck file32 %s \r\n", answer[class], answer[mounted], answer[mounted32])
	fmt.Printf("check write %s\r\ncheck done yes\r\n", answer[may && !(mounted && c.Mounts[0].ReadOnly)])
	return nil
}

// forNothing is for something that is awaited in vain, after commands for which a busy machine needs
// seconds.
func forNothing(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// limited ends before a test is stopped.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
