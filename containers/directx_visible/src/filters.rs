//! Where the filters lie.

#![cfg_attr(not(windows), allow(dead_code, reason = "used on Windows"))]

/// The filter for 64-bit programs, which lies beside this program.
pub(crate) const FILTER: &str = "directx-visible-filter.dll";

/// The filter for 32-bit programs, which may be missing.
pub(crate) const FILTER_32: &str = "directx-visible-filter32.dll";

/// Where the filter for 32-bit programs lies: beside `program`, which is the path of this
/// program. 32-bit programs see the folder `SysWOW64` in place of the system folder, so it
/// lies there if this program lies in the system folder.
pub(crate) fn path_of_32_bit_filter(program: &str, system_folder: &str) -> Option<String> {
    let (folder, _) = program.rsplit_once('\\')?;
    let (windows, _) = system_folder.rsplit_once('\\')?;
    let start = folder.get(..system_folder.len());
    let is_system = start.is_some_and(|start| start.eq_ignore_ascii_case(system_folder));
    Some(match folder.get(system_folder.len()..) {
        Some(rest) if is_system && (rest.is_empty() || rest.starts_with('\\')) => {
            format!("{windows}\\SysWOW64{rest}\\{FILTER_32}")
        }
        _ => format!("{folder}\\{FILTER_32}"),
    })
}

#[cfg(test)]
mod tests {
    use super::path_of_32_bit_filter;

    #[test]
    fn a_32_bit_program_finds_its_filter() {
        let path = |program| path_of_32_bit_filter(program, r"C:\Windows\system32").unwrap();
        for (program, expected) in [
            (r"C:\app\directx-visible.exe", r"C:\app\directx-visible-filter32.dll"),
            (
                r"C:\Windows\System32\directx-visible.exe",
                r"C:\Windows\SysWOW64\directx-visible-filter32.dll",
            ),
            (
                r"c:\windows\SYSTEM32\gpu\directx-visible.exe",
                r"C:\Windows\SysWOW64\gpu\directx-visible-filter32.dll",
            ),
            (
                r"C:\Windows\System32-gpu\directx-visible.exe",
                r"C:\Windows\System32-gpu\directx-visible-filter32.dll",
            ),
        ] {
            assert_eq!(path(program), expected);
        }
        assert_eq!(path_of_32_bit_filter("directx-visible.exe", r"C:\Windows\system32"), None);
    }
}
