package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolatedVariable marks a process in its own mount namespace.
const isolatedVariable = "CONTROL_PLANE_ISOLATED"

// isolate restarts the program in a mount namespace in which only folder can be written, with an
// empty working directory. The kubelet deletes files by patterns: with a runtime that reports no
// log path, these match whatever lies in its working directory.
func isolate(folder string) error {
	if os.Getenv(isolatedVariable) != "" {
		return mustBeReadOnly("/")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	empty := filepath.Join(folder, "empty")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return err
	}
	// The namespace belongs to this thread until the new program replaces the others.
	runtime.LockOSThread()
	if err := enterReadOnlyRoot(folder); err != nil {
		return fmt.Errorf("cannot isolate the process: %w\nhint: run it as root, or under `unshare --user --map-root-user`", err)
	}
	if err := os.Chdir(empty); err != nil {
		return err
	}
	temporary := filepath.Join(folder, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return err
	}
	environment := append(os.Environ(), isolatedVariable+"=1", "TMPDIR="+temporary)
	return syscall.Exec("/proc/self/exe", os.Args, environment)
}

func enterReadOnlyRoot(folder string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount of %s: %w", folder, err)
	}
	readOnly := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &readOnly); err != nil {
		return fmt.Errorf("read-only root: %w", err)
	}
	writable := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(-1, folder, 0, &writable); err != nil {
		return fmt.Errorf("writable %s: %w", folder, err)
	}
	return nil
}

func mustBeReadOnly(folder string) error {
	file, err := os.CreateTemp(folder, "")
	if err == nil {
		file.Close()
		_ = os.Remove(file.Name())
		return fmt.Errorf("%s can be written", folder)
	}
	if !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

// bind makes the folder source appear at target.
func bind(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount of %s at %s: %w", source, target, err)
	}
	return nil
}

// endWithParent kills this process when the one that has started it ends.
func endWithParent() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
