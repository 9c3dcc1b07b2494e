package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// logLimit is how much of each log a failed test shows, in bytes.
const logLimit = 6 << 10

// process is a program that runs until it is stopped, or the tests end.
type process struct {
	command *exec.Cmd
	log     string
	// exited is closed when the program has exited.
	exited chan struct{}
}

// startProcess starts a program that appends its output to the file log.
func startProcess(log, program string, arguments ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = file, file
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() != 0 {
		// The cluster mounts folders, which root in a namespace of users may do, too.
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	p := &process{command, log, make(chan struct{})}
	started := make(chan error)
	go func() {
		// The signal is sent when the thread that has started the process ends.
		runtime.LockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(p.exited)
		}
	}()
	return p, <-started
}

// alive returns nil while the program runs, and then an error with its exit status.
func (p *process) alive() error {
	select {
	case <-p.exited:
		return fmt.Errorf("%s has exited: %s", p.command, p.command.ProcessState)
	default:
		return nil
	}
}

// signal sends a signal to the program.
func (p *process) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		t.Errorf("%s: %v", p.command, err)
	}
}

// kill ends the program without a warning.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// shutDown ends the program as a DaemonSet does, and fails unless it exits with 0.
func (p *process) shutDown(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(waitLimit):
		t.Errorf("%s has not exited %v after SIGTERM", p.command, waitLimit)
		p.kill()
	}
	if state := p.command.ProcessState; !state.Success() {
		t.Errorf("%s: %s", p.command, state)
	}
}

// tail returns the end of a file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if skipped := len(text) - logLimit; skipped > 0 {
		if end := bytes.IndexByte(text[skipped:], '\n'); end >= 0 {
			skipped += end + 1
		}
		text = text[skipped:]
	}
	return fmt.Sprintf("the end of %s:\n%s", path, text)
}

// eventually waits until actual() equals wanted and returns how long that took.
func eventually[T comparable](t *testing.T, what string, wanted T, actual func() T) time.Duration {
	t.Helper()
	start := time.Now()
	for {
		got := actual()
		if got == wanted {
			return time.Since(start)
		}
		if time.Since(start) > waitLimit {
			t.Fatalf("%s: still %v after %[4]v, expected %[3]v", what, got, wanted, waitLimit)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
