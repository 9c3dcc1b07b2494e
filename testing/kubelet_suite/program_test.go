package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds every wait for something that takes milliseconds on an idle
	// machine.
	patience = 30 * time.Second
	// shutdownPatience is what the kubelet leaves a container between SIGTERM and
	// SIGKILL by default.
	shutdownPatience = 30 * time.Second
)

// arguments are those that `serve` and `simulate` have in common.
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

// plugin is a running `directx-device-plugin serve`.
type plugin struct {
	t       *testing.T
	command *exec.Cmd
	// ended is closed when the program has ended, after failure was set.
	ended   chan struct{}
	failure error
}

// startPlugin starts the program; it is stopped when the test ends.
func startPlugin(t *testing.T, common arguments) *plugin {
	t.Helper()
	command := exec.Command(program, append([]string{"serve"}, common.list()...)...)
	output := journal.source("plugin")
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatalf("the plugin does not start: %v", err)
	}
	p := &plugin{t: t, command: command, ended: make(chan struct{})}
	go func() {
		p.failure = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.stop)
	return p
}

// alive says why the plugin no longer runs, nil while it does.
func (p *plugin) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the plugin has ended: %s", p.command.ProcessState)
	default:
		return nil
	}
}

// stop ends the plugin as a DaemonSet does, and fails unless it exits with 0.
func (p *plugin) stop() {
	p.end(syscall.SIGTERM)
	if p.failure != nil && !p.killed() {
		p.t.Errorf("the plugin did not end well: %v", p.failure)
	}
}

// kill ends the plugin without a chance to clean up.
func (p *plugin) kill() { p.end(syscall.SIGKILL) }

func (p *plugin) end(signal syscall.Signal) {
	if p.alive() != nil {
		return
	}
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Errorf("cannot send the plugin %v: %v", signal, err)
	}
	select {
	case <-p.ended:
	case <-time.After(shutdownPatience):
		p.t.Errorf("the plugin still runs %v after %v", shutdownPatience, signal)
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// killed says whether SIGKILL ended the plugin.
func (p *plugin) killed() bool {
	status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// eventually waits until actual() is wanted and returns how long that took.
func eventually[T comparable](t *testing.T, p *plugin, what string, wanted T, actual func() T) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		got := actual()
		if got == wanted {
			return time.Since(start)
		}
		if p != nil && p.alive() != nil {
			t.Fatalf("%s: %v, not %v: %v", what, got, wanted, p.alive())
		}
		if time.Since(start) > patience {
			t.Fatalf("%s: still %v, not %v, after %v", what, got, wanted, patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stays fails if actual() is anything but wanted during the time.
func stays[T comparable](t *testing.T, what string, wanted T, actual func() T, during time.Duration) {
	t.Helper()
	for start := time.Now(); time.Since(start) < during; time.Sleep(5 * time.Millisecond) {
		if got := actual(); got != wanted {
			t.Fatalf("%s: %v, not %v, after %v", what, got, wanted, time.Since(start))
		}
	}
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

// simulate asks the program what a kubelet would do with these pods, in this order.
func simulate(t *testing.T, common arguments, pods []request) prediction {
	t.Helper()
	words := append([]string{"simulate", "--output", "json"}, common.list()...)
	for _, pod := range pods {
		words = append(words, "--pod", fmt.Sprintf("%s=%s:%d", pod.name, pod.resource, pod.count))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, program, words...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, journal.source("simulate")
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	var result prediction
	if err := json.Unmarshal(output.Bytes(), &result); err != nil {
		t.Fatalf("%v prints something else than JSON: %v\n%s", command, err, output.String())
	}
	return result
}

// resource is the predicted resource with this name.
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

// writeConfig writes a configuration file; nothing for an empty text.
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
