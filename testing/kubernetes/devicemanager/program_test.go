package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// waitLimit bounds every wait for something that takes milliseconds on an idle machine.
const waitLimit = 2 * time.Minute

// ending is a way in which a plugin is stopped.
type ending string

const (
	// shutdown is what the operating system sends before it kills: SIGTERM, or Ctrl-Break on
	// Windows.
	shutdown ending = "shut down"
	// kill gives the plugin no time to clean up.
	kill ending = "killed"
)

// require skips a test on a host where a plugin cannot be stopped in this way.
func (e ending) require(t *testing.T) {
	if reason := noShutdown(); e == shutdown && reason != "" {
		t.Skip(reason)
	}
}

// ordinary returns the way in which plugins are usually stopped on this host.
func ordinary() ending {
	if noShutdown() != "" {
		return kill
	}
	return shutdown
}

// arguments are the common arguments of `serve` and `simulate`.
type arguments struct {
	inventory    string
	config       string
	driverModels []string
}

func (a arguments) list() []string {
	list := []string{"--inventory", a.inventory}
	if a.config != "" {
		list = append(list, "--config", a.config)
	}
	for _, model := range a.driverModels {
		list = append(list, "--driver-model", model)
	}
	return list
}

// plugin is a running device plugin, usually `directx-device-plugin serve`.
type plugin struct {
	t       *testing.T
	command *exec.Cmd
	// exited is closed when the program has exited, after failure is set.
	exited  chan struct{}
	failure error
	// killed is set when the test has killed the program.
	killed bool
}

// startPlugin starts the program, with further arguments of `serve`. It is stopped when the test
// ends.
func startPlugin(t *testing.T, common arguments, further ...string) *plugin {
	t.Helper()
	words := append([]string{"serve"}, common.list()...)
	return startCommand(t, exec.Command(program, append(words, further...)...))
}

// startCommand starts a device plugin. It is stopped when the test ends.
func startCommand(t *testing.T, command *exec.Cmd) *plugin {
	t.Helper()
	output := nodeLog.source("plugin")
	command.Stdout, command.Stderr = output, output
	allowShutdown(command)
	if err := command.Start(); err != nil {
		t.Fatalf("cannot start the plugin: %v", err)
	}
	p := &plugin{t: t, command: command, exited: make(chan struct{})}
	go func() {
		p.failure = command.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.stop)
	return p
}

// alive returns nil while the plugin runs, and then an error with its exit status.
func (p *plugin) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("the plugin has exited: %s", p.command.ProcessState)
	default:
		return nil
	}
}

// stop shuts the plugin down as a DaemonSet does, and fails unless it exits with 0. It kills
// the plugin on a host that cannot shut it down.
func (p *plugin) stop() {
	p.end(ordinary())
	if p.failure != nil && !p.killed {
		p.t.Errorf("the plugin exited with an error: %v", p.failure)
	}
}

func (p *plugin) end(how ending) {
	if p.alive() != nil {
		return
	}
	var err error
	if p.killed = how == kill; p.killed {
		err = p.command.Process.Kill()
	} else {
		err = requestShutdown(p.command.Process)
	}
	if err != nil {
		p.t.Errorf("the plugin cannot be %s: %v", how, err)
	}
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		p.t.Errorf("the plugin has not exited %v after it was %s", waitLimit, how)
		_ = p.command.Process.Kill()
		<-p.exited
	}
}

// eventually waits until actual() equals wanted and returns how long that took.
func eventually[T comparable](t *testing.T, p *plugin, what string, wanted T, actual func() T) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		got := actual()
		if got == wanted {
			return time.Since(start)
		}
		if p != nil && p.alive() != nil {
			t.Fatalf("%s: %v, expected %v: %v", what, got, wanted, p.alive())
		}
		if time.Since(start) > waitLimit {
			t.Fatalf("%s: still %v after %[4]v, expected %[3]v", what, got, wanted, waitLimit)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// mustStay fails if actual() differs from wanted during the given time.
func mustStay[T comparable](t *testing.T, what string, wanted T, actual func() T, during time.Duration) {
	t.Helper()
	for start := time.Now(); time.Since(start) < during; time.Sleep(5 * time.Millisecond) {
		if got := actual(); got != wanted {
			t.Fatalf("%s: %v after %[4]v, expected %[3]v", what, got, wanted, time.Since(start))
		}
	}
}

// settle waits until actual() equals wanted for some time without interruption.
func settle[T comparable](t *testing.T, what string, wanted T, actual func() T, during time.Duration) {
	t.Helper()
	start := time.Now()
	for since := start; time.Since(since) < during; time.Sleep(5 * time.Millisecond) {
		got := actual()
		if got == wanted {
			continue
		}
		since = time.Now()
		if time.Since(start) > waitLimit {
			t.Fatalf("%s: still changing after %v, now %v, expected %v", what, waitLimit, got, wanted)
		}
	}
	t.Logf("%s: %v for the last %v of %v", what, wanted, during, time.Since(start))
}

// prediction is what `simulate --output json` prints.
type prediction struct {
	Resources []predictedResource `json:"resources"`
	Pods      []predictedPod      `json:"pods"`
}

type predictedResource struct {
	Name        string `json:"name"`
	Capacity    int64  `json:"capacity"`
	Allocatable int64  `json:"allocatable"`
	Devices     []struct {
		ID     string `json:"id"`
		Health string `json:"health"`
	} `json:"devices"`
}

type predictedPod struct {
	Name      string            `json:"name"`
	Resource  string            `json:"resource"`
	Count     int64             `json:"count"`
	Admitted  bool              `json:"admitted"`
	Reason    string            `json:"reason"`
	DeviceIDs []string          `json:"deviceIDs"`
	Container *containerOptions `json:"container"`
}

// request is one `--pod`.
type request struct {
	name, resource string
	count          int64
}

// simulate returns the program's prediction for these pods, in this order.
func simulate(t *testing.T, common arguments, pods []request) prediction {
	t.Helper()
	words := append([]string{"simulate", "--output", "json"}, common.list()...)
	for _, pod := range pods {
		words = append(words, "--pod", fmt.Sprintf("%s=%s:%d", pod.name, pod.resource, pod.count))
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	command := exec.CommandContext(ctx, program, words...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, nodeLog.source("simulate")
	// It exits with 1 if a pod is refused.
	if err := command.Run(); command.ProcessState == nil || command.ProcessState.ExitCode() > 1 {
		t.Fatalf("%v: %v", command, err)
	}
	var result prediction
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		t.Fatalf("the output of %v is not the expected JSON: %v\n%s", command, err, output.String())
	}
	return result
}

// resource returns the predicted resource with this name.
func (p prediction) resource(t *testing.T, name string) predictedResource {
	t.Helper()
	for _, resource := range p.Resources {
		if resource.Name == name {
			return resource
		}
	}
	t.Fatalf("simulate predicts no resource %s: %+v", name, p.Resources)
	return predictedResource{}
}

// writeConfig writes a configuration file and returns its path; for an empty text it writes
// no file.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
