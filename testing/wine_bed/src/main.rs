//! Makes a Wine prefix look like the host of an inventory.
//!
//! The program reads an inventory file and creates `PnP` devices, driver keys, driver
//! store folders and the host's version in the registry. It uses the functions that Windows
//! has for this (`SetupAPI`, registry, files), so that programs read them as on a real
//! host. The program records in the registry what it created: setting another inventory
//! removes what that inventory does not contain, and `clear` removes everything.
//!
//! `send-shutdown` stops a program as containerd stops a `HostProcess` container.
//!
//! The commands from `gpu-lists` on are what the tests of the visibility filter run in
//! filtered processes. As a 32-bit program it has only these.
//!
//! The program does not create the adapters: `dxcore_double` simulates them.

#[cfg(all(windows, target_pointer_width = "64"))]
mod bed;
#[cfg(all(windows, target_pointer_width = "64"))]
mod console_event;
#[cfg(windows)]
mod console_user;
#[cfg(all(windows, target_pointer_width = "64"))]
mod contents;
#[cfg(all(windows, target_pointer_width = "64"))]
mod device;
#[cfg(all(windows, target_pointer_width = "64"))]
mod driver;
#[cfg(all(windows, target_pointer_width = "64"))]
mod faults;
#[cfg(windows)]
mod gpu_user;
#[cfg(all(windows, target_pointer_width = "64"))]
mod record;
#[cfg(all(windows, target_pointer_width = "64"))]
mod windows_version;

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        #[cfg(target_pointer_width = "64")]
        ["set", inventory] => bed::set(std::path::Path::new(inventory)),
        #[cfg(target_pointer_width = "64")]
        ["clear"] => bed::clear(),
        #[cfg(target_pointer_width = "64")]
        ["remove-driver-key", key] => faults::remove_driver_key(key),
        #[cfg(target_pointer_width = "64")]
        ["put-dword", key, name] => faults::put_dword(key, name),
        #[cfg(target_pointer_width = "64")]
        ["put-property", id, name, kind, text] => faults::put_property(id, name, kind, text),
        #[cfg(target_pointer_width = "64")]
        ["send-shutdown", program] => console_event::send_shutdown(program),
        #[cfg(target_pointer_width = "64")]
        ["has-unix-sockets"] => {
            println!("{}", device_plugin::unix_sockets::is_supported());
            Ok(())
        }
        ["gpu-lists", luids @ ..] => gpu_user::print_lists(luids),
        ["open-adapters", luid] => gpu_user::print_open_adapters(luid),
        ["load-filter", file] => gpu_user::load_filter(file),
        ["damage-and-load-filter", library, function, file] => {
            gpu_user::damage_and_load_filter(library, function, file)
        }
        ["move-imports-and-load-filter", file] => gpu_user::move_imports_and_load_filter(file),
        ["without-environment", program, arguments @ ..] => {
            gpu_user::run_without_environment(program, arguments)
        }
        ["children", count, program, arguments @ ..] => {
            gpu_user::run_children(count, program, arguments)
        }
        // These are the arguments of the 32-bit cmd.exe, which Wine in Debian lacks.
        ["/d", "/s", "/c", line] => gpu_user::run_line(line),
        ["exit", code] | ["/d", "/c", "exit", code] => gpu_user::exit(code),
        ["command-line", ..] => gpu_user::print_command_line(),
        ["wait-for-shutdown"] => gpu_user::wait_for_shutdown(),
        ["in-console", program, arguments @ ..] => console_user::run_in_console(program, arguments),
        ["interrupt", program, arguments @ ..] => console_user::interrupt(program, arguments),
        ["wait-for-interrupt"] => console_user::wait_for_interrupt(),
        _ => {
            eprintln!(
                "usage: wine_bed set INVENTORY | clear | remove-driver-key {{CLASS}}\\NNNN | \
                 put-dword {{CLASS}}\\NNNN\\KEY NAME | put-property ID NAME TYPE TEXT | send-shutdown PROGRAM.exe | \
                 has-unix-sockets | gpu-lists [LUID]... | open-adapters LUID | load-filter DLL | damage-and-load-filter DLL FUNCTION FILTER | \
                 move-imports-and-load-filter DLL | \
                 without-environment PROGRAM [ARGUMENT]... | \
                 children COUNT PROGRAM [ARGUMENT]... | exit CODE | command-line [ARGUMENT]... | \
                 wait-for-shutdown | \
                 in-console PROGRAM [ARGUMENT]... | interrupt PROGRAM [ARGUMENT]... | \
                 wait-for-interrupt"
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(windows))]
fn main() {
    eprintln!("error: wine_bed runs only on Windows\nhint: run it with `testing/wine/wine`");
    std::process::exit(2);
}
