package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// variablePrefix is how the names of the plugin's variables begin.
	variablePrefix = "DIRECTX_"
	// probeFolder has gpu-probe in containers on a node with a GPU.
	probeFolder = `C:\windows-node`
)

// The exit codes of directx-visible (docs/reference/tools.md), and one of the child
// process that it starts here.
const (
	launcherWorks     = "0"
	launcherDifferent = "1"
	launcherStale     = "121"
	childExitCode     = "7"
)

// launcherResults are how directx-visible may end in a container, for `--check` and for its child
// process, and madeUpResults are further ones if the device is made up: it does not exist, or the
// image has no functions that list devices, such as nanoserver, so that nothing can be compared.
var (
	launcherResults = [][2]string{{launcherWorks, childExitCode}}
	madeUpResults   = [][2]string{{launcherStale, launcherStale}, {launcherDifferent, childExitCode}}
)

// What a container does for cmd.exe, joined by `&`. `!errorlevel!` is the exit code of the program
// before it. There are no quotation marks: cmd.exe and containerd treat them differently.
var (
	fileChecks = []string{
		`(if exist ` + driverStore + ` (echo check folder yes) else (echo check folder no))`,
		`(if exist ` + mountedFile + ` (echo check file yes) else (echo check file no))`,
		`(if exist ` + mountedFile32 + ` (echo check file32 yes) else (echo check file32 no))`,
		`(echo changed>>` + mountedFile + `) 2>nul && echo check write yes || echo check write no`,
	}
	// A pod without its device must fail, because the kubelet does not notice it.
	deviceCheck    = `(if not defined DIRECTX_VISIBLE_DEVICES (echo check device no & exit 3))`
	variables      = `set ` + variablePrefix
	launcherChecks = []string{
		`directx-visible --check & echo check launcher !errorlevel!`,
		`directx-visible -- cmd /c exit ` + childExitCode + ` & echo check child !errorlevel!`,
	}
	probeCheck = probeFolder + `\gpu-probe.exe --expect & echo check probe !errorlevel!`
	done       = `echo check done yes`
	keep       = `ping -t 127.0.0.1 >nul`
)

// endAfterChecks is for containers without the kubelet.
var endAfterChecks = append(slices.Clone(fileChecks), done)

// podChecks are for pods with a device, which keep running.
func (n *node) podChecks() []string {
	commands := append([]string{deviceCheck}, fileChecks...)
	commands = append(append(commands, variables), launcherChecks...)
	if n.live {
		commands = append(commands, probeCheck)
	}
	return append(commands, done, keep)
}

func script(commands []string) []string {
	return []string{"cmd", "/v:on", "/c", strings.Join(commands, " & ")}
}

// checks are what a container has found out, by name.
type checks map[string]string

// output is what a container wrote.
type output struct {
	checks    checks
	variables map[string]string
}

func parseOutput(text string) output {
	found := output{checks{}, map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "check" {
			found.checks[fields[1]] = fields[2]
		} else if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, variablePrefix) {
			found.variables[name] = value
		}
	}
	return found
}

// mustInclude fails unless the container has found what is wanted.
func (found checks) mustInclude(wanted checks) error {
	for name, value := range wanted {
		if found[name] != value {
			cause := fmt.Errorf("check %s: %q, expected %q, of %v", name, found[name], value, found)
			return &problem{"the container does not see what it should", "read the checks in the log", cause}
		}
	}
	return nil
}

// mustHaveDevice fails unless a pod's container has its device. Only a made-up device has the file.
func (found checks) mustHaveDevice(live bool) error {
	if live {
		return found.mustInclude(checks{"folder": "yes"})
	}
	return found.mustInclude(checks{"folder": "yes", "file": "yes", "write": "no"})
}

// mustRunLauncher fails unless directx-visible has checked itself and started a child process.
func (found checks) mustRunLauncher(live bool) error {
	result := [2]string{found["launcher"], found["child"]}
	if slices.Contains(launcherResults, result) || (!live && slices.Contains(madeUpResults, result)) {
		return nil
	}
	cause := fmt.Errorf("--check ended with %q, and a child process with %q", result[0], result[1])
	return &problem{"directx-visible does not work in the container", "its exit codes are in docs/reference/tools.md", cause}
}
