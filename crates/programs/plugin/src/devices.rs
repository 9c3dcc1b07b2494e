//! `devices`: lists the DirectX devices of this host or of an inventory.

mod json;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use command_line::device_summary::{health, supports};
use command_line::{Failure, OutputFormat};
use devices::printable::{printable, printable_display};
use devices::{Criteria, Device, DriverKey, Filter, HostSnapshot, PnpDevice, Selection, discover};

use crate::devices::json::Document;

#[derive(Args, Debug)]
pub(crate) struct DevicesArguments {
    /// Which devices: all, display, compute, display-only, compute-only or display-and-compute
    #[arg(long, value_name = "FILTER", default_value_t = Filter::All)]
    filter: Filter,
    /// Inventory (a recorded host) to use instead of this host
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(crate) fn run(arguments: &DevicesArguments) -> Result<(), Failure> {
    let mut snapshot = command_line::read_host(arguments.inventory.as_deref())?;
    if arguments.inventory.is_none() {
        command_line::add_nvidia(&mut snapshot);
    }
    warn_of_adapters(&snapshot);
    let selection = discover(&snapshot, Criteria { filter: arguments.filter, ..Criteria::ALL });
    match arguments.output {
        OutputFormat::Text => command_line::print(&text(&selection, &snapshot)),
        OutputFormat::Json => command_line::print_json(&Document::of(&selection, &snapshot)),
    }
}

/// Warns of the adapters that could not be read, or only in part.
pub(crate) fn warn_of_adapters(snapshot: &HostSnapshot) {
    for warning in &snapshot.warnings {
        tracing::warn!("adapter with LUID {}: {}", warning.luid, warning.text);
    }
}

fn driver_key(device: &Device) -> String {
    device.driver_key.as_ref().map(DriverKey::registry_path).unwrap_or_default()
}

fn location_path(device: &Device) -> &str {
    device.location_path.as_ref().map_or("", |path| path.as_str())
}

fn store_path(device: &Device) -> &str {
    device.driver_store.as_ref().map_or("", |store| store.path.as_str())
}

fn text(selection: &Selection, snapshot: &HostSnapshot) -> String {
    let mut text = String::new();
    for device in &selection.devices {
        // Writing to a String cannot fail.
        let _ = write_device(&mut text, device);
    }
    if selection.devices.is_empty() {
        text.push_str("no DirectX devices found\n");
    }
    if !selection.skipped.is_empty() {
        text.push_str("Skipped adapters:\n");
    }
    for skipped in &selection.skipped {
        let name = if skipped.description.is_empty() { "adapter" } else { &skipped.description };
        let reason = printable_display(&skipped.reason);
        let _ = writeln!(text, "  {} (LUID {}): {reason}", printable(name), skipped.luid);
    }
    if !snapshot.devices_without_adapter.is_empty() {
        text.push_str("Devices without an adapter (doctor prints the fix):\n");
    }
    for PnpDevice { id, description, problem_code, .. } in &snapshot.devices_without_adapter {
        let name = printable(description);
        let id = printable(id.as_str());
        let _ = writeln!(text, "  {name} ({id}): problem code {problem_code}");
    }
    text
}

fn write_device(text: &mut String, device: &Device) -> std::fmt::Result {
    let vendor = match device.manufacturer.as_str() {
        "" => device.vendor.to_string(),
        manufacturer => format!("{} ({manufacturer})", device.vendor),
    };
    let files = &device.runtime_files;
    writeln!(text, "{}", printable(&device.description))?;
    for (name, value) in [
        ("PnP id", device.id.to_string()),
        ("LUID", device.luid.to_string()),
        ("Kind", device.kind.to_string()),
        ("Vendor", vendor),
        ("Location path", location_path(device).to_owned()),
        ("Driver", device.driver_version.map(|v| v.to_string()).unwrap_or_default()),
        ("Driver key", driver_key(device)),
        ("Driver store", driver_store(device)),
        ("Memory", device.dedicated_memory_mib.map(|n| format!("{n} MiB")).unwrap_or_default()),
        ("Supports", supports(device)),
        ("Health", health(device)),
        ("License", device.nvidia.license.map(|license| license.to_string()).unwrap_or_default()),
        (
            "Runtime files",
            format!(
                "{} from the driver: {} for System32, {} for SysWOW64",
                files.system32.len() + files.wow64.len(),
                files.system32.len(),
                files.wow64.len()
            ),
        ),
    ] {
        if !value.is_empty() {
            writeln!(text, "  {name:<16}{}", printable(&value))?;
        }
    }
    for rejected in &files.rejected {
        let line = format_args!("{} `{}`: {}", rejected.key, rejected.value, rejected.why);
        writeln!(text, "  ignored: {}", printable_display(line))?;
    }
    writeln!(text)
}

fn driver_store(device: &Device) -> String {
    match device.rejected_store() {
        Some(error) => format!("not used: {error}"),
        None => store_path(device).to_owned(),
    }
}
