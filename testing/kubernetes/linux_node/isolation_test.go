package linux_node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The variables of the node's first process.
const (
	// folderVariable names the folder of the node on this machine.
	folderVariable = "LINUX_NODE_FOLDER"
	// groupVariable names the control group of the node.
	groupVariable = "LINUX_NODE_GROUP"
	// programsVariable lists the folders of the node's programs.
	programsVariable = "LINUX_NODE_PROGRAMS"
	// enteredVariable marks a process that has entered the node.
	enteredVariable = "LINUX_NODE_ENTERED"
)

// cgroups is where every hierarchy of control groups is.
const cgroups = "/sys/fs/cgroup"

// hierarchy is a mounted hierarchy of control groups.
type hierarchy struct {
	mountPoint string
	// options are those of a mount of it, and empty for version 2.
	options string
}

func (h hierarchy) isVersion2() bool { return h.options == "" }

// hierarchies returns the hierarchies below [cgroups].
func hierarchies() ([]hierarchy, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []hierarchy
	for line := range strings.Lines(string(text)) {
		// ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS … - TYPE SOURCE OPTIONS
		before, after, _ := strings.Cut(line, " - ")
		mount, system := strings.Fields(before), strings.Fields(after)
		if !strings.HasPrefix(mount[4], cgroups) {
			continue
		}
		switch system[0] {
		case "cgroup":
			options := slices.DeleteFunc(strings.Split(system[2], ","), func(option string) bool { return option == "rw" || option == "ro" })
			found = append(found, hierarchy{mount[4], strings.Join(options, ",")})
		case "cgroup2":
			found = append(found, hierarchy{mountPoint: mount[4]})
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups are mounted at " + cgroups)
	}
	return found, nil
}

// newGroups creates a group with this name in every hierarchy, in which all processes of the node
// live.
func newGroups(all []hierarchy, name string) error {
	for _, h := range all {
		group := filepath.Join(h.mountPoint, name)
		if h.isVersion2() {
			if err := delegate(h.mountPoint); err != nil {
				return err
			}
		}
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		// A new group of this controller allows no processor, and so takes no process.
		for _, file := range []string{"cpuset.mems", "cpuset.cpus"} {
			value, err := os.ReadFile(filepath.Join(h.mountPoint, file))
			if err != nil || h.isVersion2() {
				continue
			}
			if err := os.WriteFile(filepath.Join(group, file), value, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a group use its controllers.
func delegate(group string) error {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(controllers)) {
		err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%w\nhint: start this container with `--cgroupns=host`", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeGroups removes the groups with this name and all below. Processes that were killed need a
// moment to end.
func removeGroups(all []hierarchy, name string) error {
	var failed []error
	for _, h := range all {
		group := filepath.Join(h.mountPoint, name)
		err := removeGroup(group)
		for end := time.Now().Add(10 * time.Second); errors.Is(err, unix.EBUSY) && time.Now().Before(end); err = removeGroup(group) {
			time.Sleep(50 * time.Millisecond)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func removeGroup(group string) error {
	children, err := os.ReadDir(group)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, child := range children {
		if child.IsDir() {
			err = errors.Join(err, removeGroup(filepath.Join(group, child.Name())))
		}
	}
	return errors.Join(err, os.Remove(group))
}

// runIsolated runs TestOnTheNode on the node, of which it is the first process.
func runIsolated(folder, group string, programs []string) ([]byte, error) {
	command := exec.Command("/proc/self/exe", "-test.v", "-test.run", "^TestOnTheNode$")
	command.Env = append(os.Environ(), folderVariable+"="+folder, groupVariable+"="+group,
		programsVariable+"="+strings.Join(programs, string(filepath.ListSeparator)))
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	// The signal is sent when the thread that has started the process ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return command.CombinedOutput()
}
