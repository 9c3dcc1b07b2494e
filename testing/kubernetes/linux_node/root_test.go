package linux_node

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// sharedFolder is the only folder of the machine that the node may write to.
const sharedFolder = "/node"

// deviceFiles are those of every Linux that containers and the kubelet use.
var deviceFiles = map[string]uint64{
	"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "full": unix.Mkdev(1, 7), "random": unix.Mkdev(1, 8),
	"urandom": unix.Mkdev(1, 9), "kmsg": unix.Mkdev(1, 11), "tty": unix.Mkdev(5, 0),
}

// enter makes this process the first one of the node, with its own root, and starts the program again.
func enter(folder, group string) error {
	// Namespaces belong to this thread until the new program replaces the others.
	runtime.LockOSThread()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		if err := os.WriteFile(filepath.Join(h.mountPoint, group, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return err
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	root, err := newRoot(filepath.Join(folder, "layers"))
	if err != nil {
		return err
	}
	if err := fill(root, folder, all); err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	// The old root lies above the new one, and is what the second call removes.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := leaveRootGroup(all); err != nil {
		return err
	}
	if err := startLoopback(); err != nil {
		return err
	}
	for name, value := range map[string]string{
		enteredVariable: "1", "PATH": os.Getenv(programsVariable) + ":" + os.Getenv("PATH"), "TMPDIR": "/tmp",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return syscall.Exec(program, os.Args, os.Environ())
}

// newRoot mounts what looks like the root of this machine, and whose changes stay in memory.
func newRoot(folder string) (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("private mounts: %w", err)
	}
	if err := mount("tmpfs", folder, "tmpfs", ""); err != nil {
		return "", err
	}
	names := map[string]string{}
	for _, name := range []string{"upper", "work", "root"} {
		names[name] = filepath.Join(folder, name)
		if err := os.Mkdir(names[name], 0o755); err != nil {
			return "", err
		}
	}
	return names["root"], mount("overlay", names["root"], "overlay", "lowerdir=/,upperdir="+names["upper"]+",workdir="+names["work"])
}

// fill gives the root what a node has in addition.
func fill(root, folder string, all []hierarchy) error {
	in := func(path string) string { return filepath.Join(root, path) }
	for _, path := range []string{"/dev", "/run", "/tmp", "/var/lib", cgroups} {
		if path == cgroups {
			if err := mount("sysfs", in("/sys"), "sysfs", ""); err != nil {
				return err
			}
		}
		if err := mount("tmpfs", in(path), "tmpfs", "mode=755"); err != nil {
			return err
		}
	}
	if err := mount("proc", in("/proc"), "proc", ""); err != nil {
		return err
	}
	if err := keepParameters(in); err != nil {
		return err
	}
	for name, number := range deviceFiles {
		if err := unix.Mknod(in("/dev/"+name), unix.S_IFCHR|0o666, int(number)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, h := range all {
		path := in(h.mountPoint)
		system := "cgroup"
		if h.isVersion2() {
			system = "cgroup2"
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := mount(system, path, system, h.options); err != nil {
			return err
		}
	}
	if err := bind(filepath.Join(folder, "shared"), in(sharedFolder)); err != nil {
		return err
	}
	for _, programs := range filepath.SplitList(os.Getenv(programsVariable)) {
		if err := bindReadOnly(programs, in(programs)); err != nil {
			return err
		}
	}
	return nil
}

// parameters are those that the kubelet sets.
var parameters = []string{
	"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom",
}

// keepParameters makes the parameters of the kernel read-only, which is also that of this machine. The
// kubelet sets copies.
func keepParameters(in func(string) string) error {
	folder := in("/proc/sys")
	if err := bindReadOnly(folder, folder); err != nil {
		return err
	}
	for _, name := range parameters {
		value, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		file := in("/run/" + strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, value, 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, filepath.Join(folder, name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount at %s: %w", name, err)
		}
	}
	return nil
}

// mount creates the target.
func mount(source, target, system, options string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, system, 0, options); err != nil {
		return fmt.Errorf("%s at %s: %w", system, target, err)
	}
	return nil
}

// bind makes a folder appear at target, which it creates.
func bind(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount of %s at %s: %w", source, target, err)
	}
	return nil
}

func bindReadOnly(source, target string) error {
	if err := bind(source, target); err != nil {
		return err
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("read-only %s: %w", target, err)
	}
	return nil
}

// leaveRootGroup moves this process into a child of its group, because in version 2 only a group
// without processes gives controllers to its children.
func leaveRootGroup(all []hierarchy) error {
	for _, h := range all {
		if !h.isVersion2() {
			continue
		}
		group := filepath.Join(h.mountPoint, "first-process")
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return err
		}
		if err := delegate(h.mountPoint); err != nil {
			return err
		}
	}
	return nil
}

func startLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
