//! The name under which a file is mounted into System32 or `SysWOW64` of a container.
//!
//! Windows mounts a file over whatever has that name. A file or folder that Windows itself
//! needs must never be the destination: the container would not start, or would run another
//! program with the rights of Windows.

use std::fmt;
use std::str::FromStr;

use host::{FileName, PathError};

/// A bare file name that Windows does not own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Destination(FileName);

/// A name that cannot be a destination, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DestinationError {
    /// The name is not a bare file name.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Windows may need what has the name.
    #[error("the destination `{0}` {1}")]
    Refused(FileName, &'static str),
}

impl Destination {
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The name with its case folded: equal for names that differ only in case.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.folded()
    }
}

impl TryFrom<FileName> for Destination {
    type Error = DestinationError;

    fn try_from(name: FileName) -> Result<Destination, DestinationError> {
        // Only ASCII letters are folded in the list.
        let folded = name.folded().to_ascii_lowercase();
        let refused = match folded.rsplit_once('.') {
            // No folder directly in System32 has an extension.
            None => "has no extension; it may be a folder of Windows",
            Some((stem, extension)) if is_short_name(stem, extension) => {
                "is a short (8.3) name, which another file may have"
            }
            // Code pages and locales have the extension nls.
            Some((_, "nls")) => "is a file of Windows itself",
            Some(_) if is_windows_file(&folded) => "is a file of Windows itself",
            Some(_) => return Ok(Destination(name)),
        };
        Err(DestinationError::Refused(name, refused))
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        text.parse::<FileName>()?.try_into()
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a name has the form that Windows generates for longer names, such as `POWERS~1.EXE`.
fn is_short_name(stem: &str, extension: &str) -> bool {
    let numbered = stem.rsplit_once('~').is_some_and(|(start, number)| {
        !start.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    });
    numbered && stem.len() <= 8 && extension.len() <= 3
}

fn is_windows_file(name: &str) -> bool {
    // API sets (Microsoft's "Windows API sets") are not files, but the loader resolves their names,
    // and older Windows has files with these names.
    let is_api_set = name.starts_with("api-ms-") || name.starts_with("ext-ms-");
    is_api_set || WINDOWS_FILES.binary_search(&name).is_ok()
}

/// Files of Windows in System32 or `SysWOW64`, sorted.
///
/// They are: the known DLLs of Server 2019 to 2025 (the registry key `Session
/// Manager\KnownDLLs`; Microsoft's "Dynamic-link library search order") with the DLLs that
/// they import; the loader, the kernel and its drivers; the processes of every session
/// (Microsoft's "Critical System Services"); shells and administrative programs; Windows'
/// own parts of DirectX and OpenGL, which must fit the kernel of the container; the C
/// runtime; security and networking; container services.
///
/// Loaders that drivers install are not in it: `opencl.dll`, `vulkan-1.dll`, `nvapi64.dll`,
/// `nvcuda.dll`, `nvml.dll`, `ze_loader.dll`, `libvpl.dll` and the like.
#[rustfmt::skip] // One name a line would fill the file.
const WINDOWS_FILES: [&str; 321] = [
    "_wow64cpu.dll", "_wowarmhw.dll", "_xtajit.dll", "activeds.dll", "adsldpc.dll", "advapi32.dll",
    "advpack.dll", "apphelp.dll", "arp.exe", "auditpol.exe", "authz.dll", "autochk.exe",
    "bcdboot.exe", "bcdedit.exe", "bcrypt.dll", "bcryptprimitives.dll", "bindfltapi.dll",
    "bitsadmin.exe", "bootvid.dll", "cacls.exe", "cdd.dll", "certreq.exe", "certutil.exe",
    "cexecsvc.exe", "cfgmgr32.dll", "chcp.com", "chkdsk.exe", "ci.dll", "cipher.exe", "clbcatq.dll",
    "cloudap.dll", "cmd.exe", "cng.dll", "combase.dll", "comctl32.dll", "comdlg32.dll", "coml2.dll",
    "computecore.dll", "computenetwork.dll", "computestorage.dll", "conhost.exe", "credui.dll",
    "crtdll.dll", "crypt32.dll", "cryptbase.dll", "cryptdll.dll", "cryptnet.dll", "cryptsp.dll",
    "cryptui.dll", "cscript.exe", "csrss.exe", "curl.exe", "d2d1.dll", "d3d10.dll", "d3d10_1.dll",
    "d3d10_1core.dll", "d3d10core.dll", "d3d10level9.dll", "d3d10warp.dll", "d3d11.dll",
    "d3d11on12.dll", "d3d12.dll", "d3d12core.dll", "d3d12sdklayers.dll", "d3d8.dll", "d3d8thk.dll",
    "d3d9.dll", "d3d9on12.dll", "d3dcompiler_47.dll", "d3dim.dll", "d3dim700.dll", "d3dramp.dll",
    "d3dscache.dll", "d3dxof.dll", "dbgcore.dll", "dbgeng.dll", "dbghelp.dll", "dcomp.dll",
    "ddraw.dll", "devobj.dll", "dhcpcsvc.dll", "dhcpcsvc6.dll", "difxapi.dll", "dinput.dll",
    "dinput8.dll", "directml.dll", "directxdatabasehelper.dll", "diskpart.exe", "dism.exe",
    "dllhost.exe", "dnsapi.dll", "dpapi.dll", "dpapisrv.dll", "drvstore.dll", "dsound.dll",
    "dssenh.dll", "dwm.exe", "dwmapi.dll", "dwrite.dll", "dxcore.dll", "dxdiagn.dll", "dxgi.dll",
    "dxgidebug.dll", "dxilconv.dll", "dxva2.dll", "expand.exe", "faultrep.dll", "find.exe",
    "findstr.exe", "firewallapi.dll", "fltlib.dll", "fontdrvhost.exe", "forfiles.exe", "format.com",
    "fsutil.exe", "ftp.exe", "fwpuclnt.dll", "gdi32.dll", "gdi32full.dll", "gdiplus.dll",
    "glu32.dll", "gmsaclient.dll", "gpresult.exe", "gpupdate.exe", "hal.dll", "hostname.exe",
    "httpapi.dll", "hvax64.exe", "hvix64.exe", "hvloader.exe", "icacls.exe", "imagehlp.dll",
    "imm32.dll", "ipconfig.exe", "iphlpapi.dll", "kdcom.dll", "kerberos.dll", "kernel.appcore.dll",
    "kernel32.dll", "kernelbase.dll", "logoff.exe", "logoncli.dll", "logonui.exe", "lsadb.dll",
    "lsaiso.exe", "lsasrv.dll", "lsass.exe", "lz32.dll", "makecab.exe", "mcupdate_authenticamd.dll",
    "mcupdate_genuineintel.dll", "mf.dll", "mfcore.dll", "mfplat.dll", "mfreadwrite.dll",
    "mfsvr.dll", "mmc.exe", "mode.com", "more.com", "msasn1.dll", "msctf.dll", "msg.exe",
    "mshta.exe", "msiexec.exe", "msmpeg2vdec.dll", "msv1_0.dll", "msvcirt.dll", "msvcp110_win.dll",
    "msvcp60.dll", "msvcp_win.dll", "msvcrt.dll", "mswsock.dll", "ncrypt.dll", "ncryptprov.dll",
    "negoexts.dll", "net.exe", "net1.exe", "netapi32.dll", "netlogon.dll", "netsh.exe",
    "netstat.exe", "netutils.dll", "newdev.dll", "nlaapi.dll", "normaliz.dll", "nsi.dll",
    "nslookup.exe", "ntdll.dll", "ntdsapi.dll", "ntkrla57.exe", "ntlmshared.dll", "ntmarta.dll",
    "ntoskrnl.exe", "ntshrui.dll", "ntvdm64.dll", "ole32.dll", "oleaut32.dll", "opengl32.dll",
    "pdh.dll", "ping.exe", "pku2u.dll", "pnputil.exe", "powrprof.dll", "profapi.dll", "propsys.dll",
    "psapi.dll", "pshed.dll", "query.exe", "quser.exe", "rasapi32.dll", "rasman.dll", "reg.exe",
    "regedt32.exe", "regsvr32.exe", "robocopy.exe", "rometadata.dll", "route.exe", "rpcrt4.dll",
    "rsaenh.dll", "runas.exe", "rundll32.exe", "runtimebroker.exe", "samcli.dll", "samlib.dll",
    "samsrv.dll", "sc.exe", "schannel.dll", "schtasks.exe", "sdbinst.exe", "secedit.exe",
    "sechost.dll", "secur32.dll", "securekernel.exe", "services.exe", "setupapi.dll", "setx.exe",
    "sfc.exe", "shcore.dll", "shell32.dll", "shlwapi.dll", "shutdown.exe", "sihost.exe", "smss.exe",
    "sort.exe", "spoolsv.exe", "srvcli.dll", "sspicli.dll", "sspisrv.dll", "svchost.exe",
    "takeown.exe", "tar.exe", "taskhostw.exe", "taskkill.exe", "tasklist.exe", "tbs.dll",
    "timeout.exe", "tree.com", "tscon.exe", "tspkg.dll", "tzutil.exe", "ucrtbase.dll", "umpdc.dll",
    "urlmon.dll", "user32.dll", "userenv.dll", "userinit.exe", "uxtheme.dll", "vaultcli.dll",
    "verifier.dll", "version.dll", "vmcompute.dll", "vmcompute.exe", "vmwp.exe", "wdigest.dll",
    "webio.dll", "wer.dll", "werfault.exe", "wermgr.exe", "wevtutil.exe", "where.exe", "whoami.exe",
    "win32k.sys", "win32kbase.sys", "win32kfull.sys", "win32kns.sys", "win32u.dll", "winbrand.dll",
    "windows.storage.dll", "windowscodecs.dll", "winhttp.dll", "wininet.dll", "wininit.exe",
    "winload.exe", "winlogon.exe", "winmm.dll", "winmmbase.dll", "winnsi.dll", "winresume.exe",
    "winspool.drv", "winsta.dll", "wintrust.dll", "wintypes.dll", "wkscli.dll", "wldap32.dll",
    "wow64.dll", "wow64base.dll", "wow64con.dll", "wow64cpu.dll", "wow64win.dll", "wowarmhw.dll",
    "ws2_32.dll", "wscript.exe", "wship6.dll", "wshtcpip.dll", "wsl.exe", "wtsapi32.dll",
    "xaudio2_9.dll", "xcopy.exe", "xinput1_4.dll", "xtajit.dll", "xtajit64.dll",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_searched() {
        assert!(WINDOWS_FILES.is_sorted_by(|a, b| a < b));
        for name in WINDOWS_FILES {
            assert_eq!(name, name.to_ascii_lowercase());
            let text = name.to_ascii_uppercase();
            let error = text.parse::<Destination>().unwrap_err().to_string();
            assert_eq!(error, format!("the destination `{text}` is a file of Windows itself"));
        }
    }

    #[test]
    fn names_that_windows_owns_are_rejected() {
        for name in [
            "kernel32.dll",
            "NTDLL.dll",
            "lsass.exe",
            "d3d12.dll",
            "dxgi.dll",
            "dxcore.dll",
            "api-ms-win-core-file-l1-1-0.dll",
            "ext-ms-win-gdi-draw-l1-1-0.dll",
            "C_1252.NLS",
            "drivers",
            "config",
            "en-US",
            "wbem",
            "DriverStore",
            "WindowsPowerShell",
            "POWERS~1.EXE",
            "KERNEL~1.DLL",
        ] {
            assert!(name.parse::<Destination>().is_err(), "{name}");
        }
        assert!(matches!(r"a\b.dll".parse::<Destination>(), Err(DestinationError::Path(_))));
        let kernel = "KERNEL32.DLL".parse::<FileName>().unwrap();
        assert!(Destination::try_from(kernel).is_err());
    }

    /// What NVIDIA's, AMD's, Intel's and Qualcomm's drivers install.
    #[test]
    fn names_that_drivers_install_are_accepted() {
        for name in [
            "OpenCL.dll",
            "vulkan-1.dll",
            "vulkan-1-999-0-0-0.dll",
            "vulkaninfo.exe",
            "nvapi64.dll",
            "nvcuda.dll",
            "nvcuvid.dll",
            "nvEncodeAPI64.dll",
            "nvml.dll",
            "nvidia-smi.exe",
            // Windows generates no such name.
            "~1.dll",
            "a~.dll",
            "nvoptix.dll",
            "nvoptix.bin",
            "amdxc64.dll",
            "amdvlk64.dll",
            "atiadlxx.dll",
            "amfrt64.dll",
            "ze_loader.dll",
            "libvpl.dll",
            "libmfxhw64.dll",
            "igd12umd64.dll",
            "intel_gfx_api-x64.dll",
            "QnnHtp.dll",
            "a~b.dll",
        ] {
            assert_eq!(name.parse::<Destination>().unwrap().as_str(), name);
        }
    }
}
