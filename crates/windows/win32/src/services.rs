//! The command lines of Windows services.

use std::io;

use windows_registry::Key;
use windows_report::service_command::ServiceCommand;
use windows_report::text;

use crate::sys::registry;

const SERVICES: &str = r"SYSTEM\CurrentControlSet\Services";

/// The command line of `service`, with the variables of this process; `None` if the service does not
/// exist. If the wrapper NSSM runs a program as the service, the result is the
/// command line of that program, which NSSM stores in the `Parameters` key of the service.
///
/// # Errors
/// The service's registry key cannot be read.
pub fn service_command(service: &str) -> io::Result<Option<ServiceCommand>> {
    let line = command_line(service)?;
    Ok(line.map(|line| ServiceCommand::parse(&line, |name| std::env::var(name).ok())))
}

fn command_line(service: &str) -> io::Result<Option<String>> {
    let key = match registry::local_machine(&format!(r"{SERVICES}\{service}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        key => key?,
    };
    if let Ok(parameters) = key.open("Parameters")
        && let Some(program) = text_value(&parameters, "Application")?
    {
        let arguments = text_value(&parameters, "AppParameters")?.unwrap_or_default();
        return Ok(Some(format!("\"{program}\" {arguments}")));
    }
    text_value(&key, "ImagePath")
}

/// The text of a value; `None` if the value is missing or blank.
fn text_value(key: &Key, value: &str) -> io::Result<Option<String>> {
    let value = registry::value(key, value)?.map(|value| text::single_for_display(&value));
    Ok(value.filter(|text| !text.trim().is_empty()))
}
