// A program built by Go that runs another one with an emptied environment. Go starts
// processes with functions of its own, not with those of a C runtime.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	child := exec.Command(os.Args[1], os.Args[2:]...)
	child.Env = []string{}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	var failed *exec.ExitError
	if err := child.Run(); errors.As(err, &failed) {
		os.Exit(failed.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
