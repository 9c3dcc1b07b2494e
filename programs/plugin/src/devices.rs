//! `devices`: lists the DirectX devices of this host or of an inventory.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use command_line::{Failure, OutputFormat};
use devices::printable::{printable, printable_display};
use devices::{Criteria, Device, Filter, RuntimeFile, Selection, discover};
use serde_json::{Value, json};

use command_line::device_summary::{health, supports};
use daemon::logging;

/// The options of `devices`.
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

/// Runs the command.
pub(crate) fn run(arguments: &DevicesArguments) -> Result<(), Failure> {
    let snapshot = command_line::read_host(arguments.inventory.as_deref())?;
    logging::log_adapter_warnings(&[], &snapshot.warnings);
    let selection = discover(&snapshot, Criteria { filter: arguments.filter, ..Criteria::ALL });
    match arguments.output {
        OutputFormat::Text => command_line::print(&text(&selection)),
        OutputFormat::Json => command_line::print_json(&document(&selection)),
    }
}

/// The JSON document.
fn document(selection: &Selection) -> Value {
    let skipped = selection.skipped.iter();
    let skipped = skipped.map(|s| json!({"luid": s.luid.0, "reason": s.reason.to_string()}));
    json!({
        "devices": selection.devices.iter().map(device_json).collect::<Value>(),
        "skipped": skipped.collect::<Value>(),
    })
}

fn device_json(device: &Device) -> Value {
    json!({
        "id": device.id.as_str(),
        "luid": device.luid.0,
        "description": device.description,
        "vendor": device.vendor.to_string(),
        "manufacturer": device.manufacturer,
        "locationPath": device.location_path.as_ref().map_or("", |path| path.as_str()),
        "driverRegistryKey": driver_key(device),
        "driverStorePath": store_path(device),
        "integrated": device.integrated,
        "detachable": device.detachable,
        "supportsDisplay": device.display,
        "supportsCompute": device.compute,
        "healthy": device.health.is_healthy(),
        "runtimeFiles": files_json(&device.runtime_files.system32),
        "runtimeFilesWow64": files_json(&device.runtime_files.wow64),
    })
}

fn driver_key(device: &Device) -> String {
    device.driver_key.as_ref().map(devices::DriverKey::registry_path).unwrap_or_default()
}

fn store_path(device: &Device) -> &str {
    device.driver_store.as_ref().map_or("", |store| store.path.as_str())
}

fn files_json(files: &[RuntimeFile]) -> Value {
    files
        .iter()
        .map(|file| json!({"source": file.source.to_string(), "destination": file.destination.to_string()}))
        .collect()
}

/// The text report.
fn text(selection: &Selection) -> String {
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
    text
}

fn write_device(text: &mut String, device: &Device) -> std::fmt::Result {
    writeln!(text, "{}", printable(&device.description))?;
    let mut row = |name: &str, value: &str| match value {
        "" => Ok(()),
        value => writeln!(text, "  {name:<16}{}", printable(value)),
    };
    row("PnP id", device.id.as_str())?;
    row("LUID", &device.luid.to_string())?;
    let vendor = match device.manufacturer.as_str() {
        "" => device.vendor.to_string(),
        manufacturer => format!("{} ({manufacturer})", device.vendor),
    };
    row("Vendor", &vendor)?;
    row("Location path", device.location_path.as_ref().map_or("", |path| path.as_str()))?;
    row("Driver", &device.driver_version.map(|v| v.to_string()).unwrap_or_default())?;
    row("Driver key", &driver_key(device))?;
    row("Driver store", store_path(device))?;
    if let Some(error) = device.rejected_store() {
        row("Driver store", &format!("not used: {error}"))?;
    }
    let memory = device.dedicated_memory_mib.map(|mib| format!("{mib} MiB"));
    row("Memory", &memory.unwrap_or_default())?;
    row("Supports", &supports(device))?;
    row("Health", &health(device))?;
    let files = &device.runtime_files;
    row(
        "Runtime files",
        &format!("{} System32, {} SysWOW64", files.system32.len(), files.wow64.len()),
    )?;
    for rejected in &files.rejected {
        let line = format_args!("{} `{}`: {}", rejected.key, rejected.value, rejected.why);
        writeln!(text, "  ignored: {}", printable_display(line))?;
    }
    writeln!(text)
}
