package kubelet

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	allocConsole             = kernel32.NewProc("AllocConsole")
	generateConsoleCtrlEvent = kernel32.NewProc("GenerateConsoleCtrlEvent")
)

// fileFlagDeleteOnClose is FILE_FLAG_DELETE_ON_CLOSE (winbase.h).
const fileFlagDeleteOnClose = 0x04000000

// lockFile excludes other processes that call it for the same file until the result is closed or
// this process has ended. It fails while another one has the file, which Windows deletes when it
// is closed.
func lockFile(path string) (io.Closer, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const access, noSharing = syscall.GENERIC_READ | syscall.GENERIC_WRITE, 0
	handle, err := syscall.CreateFile(name, access, noSharing, nil, syscall.OPEN_ALWAYS, fileFlagDeleteOnClose, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), "lock"), nil
}

// allowShutdown prepares a command for requestShutdown: the process gets a group of its own,
// so that its Ctrl-Break does not reach the tests.
func allowShutdown(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	// Only processes with a console receive Ctrl-Break. This fails if there is one already.
	_, _, _ = allocConsole.Call()
}

// noShutdown returns why requestShutdown does not work on this host, or nothing. Wine 10
// accepts Ctrl-Break for a process group of its own and does not deliver it.
func noShutdown() string {
	if syscall.NewLazyDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		return "Wine delivers no Ctrl-Break to another process group"
	}
	return ""
}

// requestShutdown sends Ctrl-Break to a process and those that it has started.
func requestShutdown(process *os.Process) error {
	result, _, err := generateConsoleCtrlEvent.Call(syscall.CTRL_BREAK_EVENT, uintptr(process.Pid))
	if result == 0 {
		return fmt.Errorf("cannot send Ctrl-Break: %w", err)
	}
	return nil
}
