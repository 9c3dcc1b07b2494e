//! `devices`: lists the DirectX devices of this host or of an inventory, each with its resource.

mod json;

use std::collections::HashMap;
use std::fmt::Write as _;

use clap::Args;
use command_line::configuration;
use command_line::device_summary::{health, supports};
use command_line::options::{DriverModels, Input};
use command_line::{Failure, OutputFormat};
use config::Flags;
use devices::{Catalog, Criteria, Device, Filter, Selection, discover};
use host::printable::{printable, printable_display};
use host::{DriverKey, HostSnapshot, Luid, PnpDevice, error_chain};

use crate::devices::json::Document;

#[derive(Args, Debug)]
pub(crate) struct DevicesArguments {
    /// Which devices: all, display, compute, display-only, compute-only or display-and-compute
    #[arg(long, value_name = "FILTER", default_value_t = Filter::All)]
    filter: Filter,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    models: DriverModels,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(crate) fn run(arguments: &DevicesArguments) -> Result<(), Failure> {
    let inventory = arguments.input.inventory.as_deref();
    let mut snapshot = command_line::read_host(inventory)?;
    if inventory.is_none() {
        command_line::add_nvidia(&mut snapshot);
    }
    warn_of_adapters(&snapshot);
    let resources = Resources::of(&snapshot, arguments)?;
    let selection = discover(&snapshot, Criteria { filter: arguments.filter, ..Criteria::ALL });
    match arguments.output {
        OutputFormat::Text => command_line::print(&text(&selection, &snapshot, &resources)),
        OutputFormat::Json => {
            command_line::print_json(&Document::of(&selection, &snapshot, &resources))
        }
    }
}

/// The resources in which a plugin with the configuration of this process advertises devices.
struct Resources {
    /// For each adapter the name of its resource, or why it has none.
    of_adapters: HashMap<Luid, Result<String, String>>,
}

impl Resources {
    /// An invalid configuration is an error only if the options name it: the devices of a node are
    /// listed whatever its configuration is.
    fn of(snapshot: &HostSnapshot, arguments: &DevicesArguments) -> Result<Resources, Failure> {
        let flags = Flags {
            driver_models: arguments.models.driver_models.clone(),
            config: arguments.input.config.clone(),
            ..Flags::default()
        };
        let is_named = flags.config.is_some() || !flags.driver_models.is_empty();
        let config = match configuration::load(&flags) {
            Ok(config) => config,
            Err(error) if is_named => return Err(error.into()),
            Err(error) => {
                tracing::warn!("the configuration is invalid: {}", error_chain(&error));
                return Ok(Resources { of_adapters: HashMap::new() });
            }
        };
        for notice in &config.notices {
            tracing::warn!("{notice}");
        }
        let offer = Catalog::new(config.policy).offer(snapshot);
        let advertised = offer.resources.iter().flat_map(|resource| {
            let devices = resource.devices.iter();
            devices.map(|(device, _)| (device.luid, Ok(resource.spec.name.to_string())))
        });
        let others =
            offer.not_advertised.iter().map(|other| (other.luid, Err(other.reason.to_string())));
        Ok(Resources { of_adapters: advertised.chain(others).collect() })
    }

    /// The name of the device's resource, or why it has none.
    fn of_device(&self, device: &Device) -> Result<&str, &str> {
        match self.of_adapters.get(&device.luid) {
            Some(known) => known.as_deref().map_err(String::as_str),
            None => Err("the configuration is invalid"),
        }
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

fn text(selection: &Selection, snapshot: &HostSnapshot, resources: &Resources) -> String {
    let mut text = String::new();
    for device in &selection.devices {
        // Writing to a String cannot fail.
        let _ = write_device(&mut text, device, resources);
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

fn write_device(text: &mut String, device: &Device, resources: &Resources) -> std::fmt::Result {
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
        ("Resource", resource_text(resources.of_device(device))),
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

fn resource_text(resource: Result<&str, &str>) -> String {
    match resource {
        Ok(name) => name.to_owned(),
        Err(why) => format!("none: {why}"),
    }
}

fn driver_store(device: &Device) -> String {
    match device.rejected_store() {
        Some(error) => format!("not used: {error}"),
        None => store_path(device).to_owned(),
    }
}
