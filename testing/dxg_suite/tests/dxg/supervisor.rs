//! Starts a program whose system calls `open` and, for `/dev/dxg`, `ioctl` the kernel passes to
//! this process (seccomp user notification).
#![allow(unsafe_code, reason = "calls seccomp, and ioctl with its structures")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of system calls and file descriptors, in the types of the kernel"
)]

use std::fs::{self, File};
use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, chroot};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use libc::{c_int, c_long, seccomp_data, seccomp_notif, seccomp_notif_resp, sock_filter};

use super::driver::{DEVICE, Driver, TYPE};

/// The file descriptor of the child with which its calls are received: no program uses so many.
const LISTENER: c_int = 900;

/// Passes the calls to this process. The program does not end before its calls are received.
#[rustfmt::skip]
const FILTER: [sock_filter; 10] = [
    load(offset_of!(seccomp_data, nr)),
    jump_if_equal(libc::SYS_open, 6, 0),
    jump_if_equal(libc::SYS_openat, 5, 0),
    jump_if_equal(libc::SYS_exit_group, 4, 0),
    jump_if_equal(libc::SYS_ioctl, 0, 4),
    load(offset_of!(seccomp_data, args) + size_of::<u64>()),
    sock_filter { code: 0x54, jt: 0, jf: 0, k: 0xFF00 }, // BPF_ALU | BPF_AND | BPF_K
    jump_if_equal((TYPE << 8) as c_long, 0, 1),
    // BPF_RET | BPF_K
    sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF },
    sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
];

/// `BPF_LD | BPF_W | BPF_ABS`.
const fn load(offset: usize) -> sock_filter {
    sock_filter { code: 0x20, jt: 0, jf: 0, k: offset as u32 }
}

/// `BPF_JMP | BPF_JEQ | BPF_K`: how many instructions are skipped if the value is `k`, or not.
const fn jump_if_equal(k: c_long, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: 0x15, jt, jf, k: k as u32 }
}

/// The memory of the program.
pub(crate) struct Memory(File);

impl Memory {
    fn of(thread: u32) -> io::Result<Memory> {
        let file = File::options().read(true).write(true).open(format!("/proc/{thread}/mem"))?;
        Ok(Memory(file))
    }

    /// Reads up to `length` bytes.
    pub(crate) fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let read = self.0.read_at(&mut bytes, address).unwrap();
        bytes.truncate(read);
        bytes
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, address).unwrap();
    }
}

/// Starts `command` with the root `root`. A thread answers its calls until it ends.
pub(crate) fn spawn(command: &mut Command, root: &Path, driver: Arc<Driver>) -> io::Result<Child> {
    let folder = root.to_owned();
    let enter = move || {
        chroot(&folder)?;
        std::env::set_current_dir("/")?;
        listen()
    };
    // SAFETY: it only makes system calls and allocates, and no other thread of this process holds
    // the allocator's lock at a fork with glibc.
    let child = unsafe { command.pre_exec(enter) }.spawn()?;
    let listener = listener_of(&child)?;
    thread::spawn(move || answer_calls(&listener, &driver));
    Ok(child)
}

/// Installs the filter in this process.
fn listen() -> io::Result<()> {
    let filter = FILTER;
    let program = libc::sock_fprog { len: FILTER.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program is valid during the call.
    let listener = check(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    })?;
    // SAFETY: no memory is used. The copy stays open when the program starts.
    check(unsafe { libc::dup2(listener as c_int, LISTENER) }.into())?;
    Ok(())
}

fn listener_of(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: no memory is used.
    let process = check(unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) })?;
    // SAFETY: it was opened above.
    let process = unsafe { OwnedFd::from_raw_fd(process as c_int) };
    let process = process.as_raw_fd();
    // SAFETY: no memory is used.
    let listener = check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, LISTENER, 0) })?;
    // SAFETY: it was opened above.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as c_int) })
}

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn answer_calls(listener: &OwnedFd, driver: &Arc<Driver>) {
    while let Some(call) = next_call(listener) {
        if c_long::from(call.data.nr) == libc::SYS_ioctl {
            // Some calls hang, so each has a thread.
            let listener = listener.try_clone().unwrap();
            let driver = Arc::clone(driver);
            thread::spawn(move || {
                let [_, number, request, ..] = call.data.args;
                let memory = Memory::of(call.pid);
                let result = memory.map(|memory| driver.call(number as u32, request, &memory));
                // A program that was killed needs no answer.
                if let Ok(result) = result {
                    answer(&listener, &call, 0, result.err().unwrap_or(0));
                }
            });
        } else {
            let error =
                driver.open_error(has_device_open(call.pid)).filter(|_| opens_device(&call));
            let flags = if error.is_some() { 0 } else { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE };
            answer(listener, &call, flags as u32, error.unwrap_or(0));
        }
    }
}

/// The next call, or `None` after the program has ended.
fn next_call(listener: &OwnedFd) -> Option<seccomp_notif> {
    loop {
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: there is one structure.
        unsafe { libc::poll(&raw mut poll, 1, -1) };
        if poll.revents & libc::POLLIN == 0 {
            return None;
        }
        // SAFETY: the structure has only integers.
        let mut call: seccomp_notif = unsafe { zeroed() };
        let number = libc::SECCOMP_IOCTL_NOTIF_RECV;
        // SAFETY: the structure is that of the number.
        if unsafe { libc::ioctl(listener.as_raw_fd(), number, &raw mut call) } == 0 {
            return Some(call);
        }
    }
}

fn answer(listener: &OwnedFd, call: &seccomp_notif, flags: u32, error: i32) {
    let response = seccomp_notif_resp { id: call.id, val: 0, error: -error, flags };
    let number = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the structure is that of the number. The call fails if the program was killed.
    unsafe { libc::ioctl(listener.as_raw_fd(), number, &raw const response) };
}

fn opens_device(call: &seccomp_notif) -> bool {
    let path = match c_long::from(call.data.nr) {
        libc::SYS_open => call.data.args[0],
        libc::SYS_openat => call.data.args[1],
        _ => return false,
    };
    let path = Memory::of(call.pid).map(|memory| memory.read(path, DEVICE.count_bytes() + 1));
    path.is_ok_and(|path| path == DEVICE.to_bytes_with_nul())
}

fn has_device_open(process: u32) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.flat_map(|file| fs::read_link(file.path())).any(|target| target.ends_with("dev/dxg"))
}
