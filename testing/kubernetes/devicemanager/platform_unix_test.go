//go:build unix

package kubelet

import (
	"io"
	"os"
	"os/exec"
	"syscall"
)

// lockFile excludes other processes that call it for the same file until the result is closed or
// this process has ended. It fails while another one has the file.
func lockFile(path string) (io.Closer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// allowShutdown prepares a command for requestShutdown.
func allowShutdown(*exec.Cmd) {}

// noShutdown returns why requestShutdown does not work on this host, or nothing.
func noShutdown() string { return "" }

// requestShutdown asks a process to shut down.
func requestShutdown(process *os.Process) error { return process.Signal(syscall.SIGTERM) }
