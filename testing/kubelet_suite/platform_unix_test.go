//go:build unix

package kubelet

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// lockFolder excludes other processes that call it for the same folder until the result is
// closed or this process has ended.
func lockFolder(path string) (io.Closer, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// allowShutdown prepares a command for requestShutdown.
func allowShutdown(*exec.Cmd) {}

// noShutdown returns why requestShutdown does not work on this host, or nothing.
func noShutdown() string { return "" }

// requestShutdown asks a process to shut down.
func requestShutdown(process *os.Process) error { return process.Signal(syscall.SIGTERM) }
