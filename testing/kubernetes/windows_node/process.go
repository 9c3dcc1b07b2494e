package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// machine runs programs.
type machine struct {
	// paths are where programs are, by their names. Others are searched in PATH.
	paths map[string]string
	// folder has everything that this program makes. It is on the system drive, on which the kubelet
	// finds some of its folders only if it also works there.
	folder string
	// logs is the folder of all logs.
	logs string
	// log receives every command and its output.
	log io.Writer
}

// run runs a program and returns what it writes to its standard output.
func (m *machine) run(ctx context.Context, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, m.path(name), arguments...)
	// A child process may keep the pipes open.
	command.WaitDelay = 5 * time.Second
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	err := command.Run()
	fmt.Fprintf(m.log, "%s %s %s\n%s%s", time.Now().Format(time.TimeOnly), name, strings.Join(arguments, " "), output.String(), messages.String())
	if err != nil {
		fmt.Fprintln(m.log, err)
		return output.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, tail(output.String()+messages.String()))
	}
	return output.String(), nil
}

func (m *machine) path(name string) string {
	if path := m.paths[name]; path != "" {
		return path
	}
	return name
}

// daemon is a program that runs until it is killed.
type daemon struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
	once    sync.Once
}

// start starts a program that appends its output to NAME.log.
func (m *machine) start(name string, arguments ...string) (*daemon, error) {
	path := filepath.Join(m.logs, name+".log")
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(m.log, "%s %s %s &\n", time.Now().Format(time.TimeOnly), name, strings.Join(arguments, " "))
	d := &daemon{command: exec.Command(m.path(name), arguments...), log: path, ended: make(chan struct{})}
	d.command.Dir = m.folder
	d.command.Stdout, d.command.Stderr = log, log
	if err := d.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = d.command.Wait()
		close(d.ended)
	}()
	return d, nil
}

// alive returns nil while the program runs, and then how it has ended.
func (d *daemon) alive() error {
	select {
	case <-d.ended:
		text, _ := os.ReadFile(d.log)
		return fmt.Errorf("%s has ended with %d:\n%s", filepath.Base(d.command.Path), d.command.ProcessState.ExitCode(), tail(string(text)))
	default:
		return nil
	}
}

func (d *daemon) kill() {
	if d == nil {
		return
	}
	d.once.Do(func() { _ = d.command.Process.Kill() })
	<-d.ended
}

// tail returns the end of a text.
func tail(text string) string {
	const limit = 2000
	text = strings.TrimSpace(text)
	if len(text) > limit {
		text = "…" + text[len(text)-limit:]
	}
	return text
}
