//! How services are started.

use std::io;

use crate::sys::registry::Key;
use crate::text;

const SERVICES: &str = r"SYSTEM\CurrentControlSet\Services";

/// The command line that the service manager starts `service` with, variables (`%NAME%`)
/// unexpanded; `None` where there is no such service. For a program that runs as a service
/// under the wrapper NSSM it is that program's, which NSSM keeps in the service's
/// `Parameters` key.
///
/// # Errors
/// The service's registry key cannot be read.
pub fn service_command(service: &str) -> io::Result<Option<String>> {
    let key = match Key::local_machine(&format!(r"{SERVICES}\{service}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        key => key?,
    };
    if let Ok(parameters) = key.open("Parameters")
        && let Some(program) = words(&parameters, "Application")?
    {
        let arguments = words(&parameters, "AppParameters")?.unwrap_or_default();
        return Ok(Some(format!("\"{program}\" {arguments}")));
    }
    words(&key, "ImagePath")
}

fn words(key: &Key, value: &str) -> io::Result<Option<String>> {
    let value = key.value(value)?.map(|value| text::single_for_display(&value.data));
    Ok(value.filter(|text| !text.trim().is_empty()))
}
