// Prints and starts the command line that a container has on Windows. Code of Kubernetes and
// containerd makes it: the kubelet's replaces variables in the `command` and `args` of a manifest,
// and containerd's combines them with the configuration of the image.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/containerd/containerd/pkg/cri/opts"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	runtimespec "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/windows"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
	"sigs.k8s.io/yaml"
)

// variables are those of the container.
var variables = map[string]string{"NAME": "replaced"}

// container has the fields of a manifest that decide about the command line.
type container struct {
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

func main() {
	if len(os.Args) < 2 {
		fail(errors.New("usage: containerd IMAGE.json [CONTAINER.yaml]"))
	}
	var image imagespec.Image
	content, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(content, &image)
	}
	var pod container
	if err == nil && len(os.Args) > 2 {
		if content, err = os.ReadFile(os.Args[2]); err == nil {
			err = yaml.UnmarshalStrict(content, &pod)
		}
	}
	if err != nil {
		fail(err)
	}
	line, err := commandLine(pod, image.Config)
	if err != nil {
		fail(err)
	}
	fmt.Println(line)
	code, err := start(line)
	if err != nil {
		fail(err)
	}
	os.Exit(int(code))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(2)
}

func commandLine(pod container, image imagespec.ImageConfig) (string, error) {
	config := &runtime.ContainerConfig{Command: expanded(pod.Command), Args: expanded(pod.Args)}
	var spec runtimespec.Spec
	err := opts.WithProcessCommandLineOrArgsForWindows(config, &image)(context.Background(), nil, nil, &spec)
	if err != nil {
		return "", err
	}
	if len(spec.Process.Args) == 0 {
		return spec.Process.CommandLine, nil
	}
	// hcsshim does the same (escapeArgs of internal/cmd).
	escaped := []string{}
	for _, word := range spec.Process.Args {
		escaped = append(escaped, windows.EscapeArg(word))
	}
	return strings.Join(escaped, " "), nil
}

// expanded replaces variables as the kubelet does.
func expanded(words []string) (result []string) {
	for _, word := range words {
		result = append(result, expansion.Expand(word, expansion.MappingFuncFor(variables)))
	}
	return result
}

// start runs a command line without a path of the program, as Windows does for a container, and
// returns the exit code.
func start(line string) (code uint32, err error) {
	text, err := windows.UTF16PtrFromString(line)
	if err != nil {
		return 0, err
	}
	var startup windows.StartupInfo
	var process windows.ProcessInformation
	if err := windows.CreateProcess(nil, text, nil, nil, true, 0, nil, nil, &startup, &process); err != nil {
		return 0, fmt.Errorf("%s: %w", line, err)
	}
	if _, err := windows.WaitForSingleObject(process.Process, windows.INFINITE); err != nil {
		return 0, err
	}
	err = windows.GetExitCodeProcess(process.Process, &code)
	return code, err
}
