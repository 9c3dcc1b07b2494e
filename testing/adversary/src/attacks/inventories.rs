//! Malicious inventories: their paths and names must not reach a container or a terminal.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use daemon_bed::{FirstGpu, GPUS, Method, RawPlugin};
use device_plugin::v1beta1::{AllocateResponse, ContainerAllocateResponse};
use devices::{Adapter, CopyToVmValue, DriverStore, HostSnapshot, StoreFiles};
use prost::Message;
use tokio::time::{Instant, sleep};

use crate::answer::{self, REPOSITORY};
use crate::child_command;
use crate::target::{HANGS, Target, allocate_request, block_on};

/// Folders that lead out of the driver store, or contain what no path contains.
const FOLDERS: [&str; 10] = [
    r"C:\Windows\System32\DriverStore\FileRepository\..\..\..\secrets",
    r"C:\Windows\System32\DriverStore\FileRepository",
    r"\\server\share\driver.inf_amd64_1",
    r"\\?\GLOBALROOT\Device\HarddiskVolume1\driver.inf_amd64_1",
    r"..\FileRepository\driver.inf_amd64_1",
    r"C:\Users\Public\driver.inf_amd64_1",
    r"D:\Windows\System32\DriverStore\FileRepository\driver.inf_amd64_1",
    r"C:\Windows\System32\DriverStore\FileRepository\driver.inf:stream",
    "C:\\Windows\\System32\\DriverStore\\FileRepository\\a\0b.inf_amd64_1",
    "C:\\Windows\\System32\\DriverStore\\FileRepository\\a\n\u{1b}[2Jb.inf_amd64_1",
];

/// Sources that lead out of the folder, and destinations that do not belong to a driver.
const FILES: [[&str; 2]; 17] = [
    ["a.dll", "kernel32.dll"],
    ["a.dll", "NTDLL.dll"],
    ["a.dll", "lsass.exe"],
    ["a.dll", "drivers"],
    ["a.dll", r"..\b.dll"],
    ["a.dll", r"config\SAM"],
    ["a.dll", "b.dll:stream"],
    ["a.dll", "con"],
    ["a.dll", "b\0c.dll"],
    ["a.dll", "b\nc.dll"],
    ["a.dll", "\u{1b}[31mb.dll"],
    ["a\u{85}.dll", "b\u{85}.dll"],
    [r"..\..\a.dll", "b.dll"],
    [r"C:\Windows\System32\config\SAM", "b.dll"],
    [r"\\server\share\a.dll", "b.dll"],
    ["a.dll:stream", "b.dll"],
    ["\u{202e}lld.a", "\u{202e}lld.b"],
];

/// Text for logs, terminals and environment variables.
const NAME: &str = "\u{1b}[2J\u{1b}]0;x\u{7}GPU\r\nlevel=error \u{7f}\u{85}\u{202e}\u{2028}";

/// Replaces the inventory by hostile ones, each with driver folders that no other has, and
/// allocates every GPU alone and two together.
pub(super) fn hostile(target: &Target) -> Result<u64> {
    block_on(async {
        let mut plugin = target.plugin().await?;
        let mut count = 0;
        while target.goes_on(count as u64) || count < FOLDERS.len().max(FILES.len()) {
            let folder = format!("{REPOSITORY}\\good{count}.inf_amd64_1");
            target.node.set_snapshot(&hostile_host(
                target.node.host(FirstGpu::Healthy),
                count,
                &folder,
            ))?;
            wait_for_folder(&mut plugin, target, &folder).await?;
            for gpu in 0..GPUS {
                answer::check(&allocate(&mut plugin, target, &[gpu]).await?)?;
            }
            // Their files have the same destinations, so this is a new pair for the log.
            answer::check(&allocate(&mut plugin, target, &[GPUS - 2, GPUS - 1]).await?)?;
            count += 1;
        }
        run_commands(target)?;
        target.node.set_host(FirstGpu::Healthy)?;
        Ok(u64::try_from(count)?)
    })
}

/// The host with a good driver folder for the last GPU, one for the GPU before it that differs in
/// its name, and hostile ones for the others.
fn hostile_host(mut host: HostSnapshot, number: usize, folder: &str) -> HostSnapshot {
    for (gpu, adapter) in host.adapters.iter_mut().enumerate() {
        name(adapter);
        let Some(store) = &mut adapter.driver_store else { continue };
        match GPUS - 1 - gpu {
            0 => folder.clone_into(&mut store.path),
            1 => store.path = format!("{folder}b"),
            n if n % 2 == 0 => {
                FOLDERS[(number + gpu) % FOLDERS.len()].clone_into(&mut store.path);
            }
            _ => set_file(store, FILES[(number + gpu) % FILES.len()]),
        }
    }
    host
}

fn name(adapter: &mut Adapter) {
    NAME.clone_into(&mut adapter.driver_description);
    let Some(pnp) = &mut adapter.pnp else { return };
    NAME.clone_into(&mut pnp.description);
    NAME.clone_into(&mut pnp.manufacturer);
}

/// Replaces every value by the same one, and makes the folder contain its source.
fn set_file(store: &mut DriverStore, file: [&str; 2]) {
    let file = file.map(str::to_owned);
    store.files = StoreFiles::Listed(BTreeSet::from([file[0].clone()]));
    for value in store.copy_to_vm.values_mut().flat_map(|key| key.values_mut()) {
        *value = CopyToVmValue::Multi(file.to_vec());
    }
}

/// Waits until the last GPU has its files from `folder`.
async fn wait_for_folder(plugin: &mut RawPlugin, target: &Target, folder: &str) -> Result<()> {
    let since = Instant::now();
    loop {
        let container = allocate(plugin, target, &[GPUS - 1]).await?;
        let is_applied =
            |mount: &str| mount.strip_prefix(folder).is_some_and(|m| m.starts_with('\\'));
        if container.mounts.iter().any(|mount| is_applied(&mount.host_path)) {
            return Ok(());
        }
        ensure!(since.elapsed() < HANGS, "the new inventory is not used");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Allocates the first replica of each of these GPUs for one container.
async fn allocate(
    plugin: &mut RawPlugin,
    target: &Target,
    gpus: &[usize],
) -> Result<ContainerAllocateResponse> {
    let replicas =
        gpus.iter().map(|gpu| target.replicas[target.replicas.len() / GPUS * gpu].clone());
    let request: Bytes = allocate_request(&replicas.collect::<Vec<_>>(), 1);
    let answer = plugin.call(Method::Allocate, request).await?;
    let mut answer = AllocateResponse::decode(answer)?;
    answer.container_responses.pop().context("no container in the answer")
}

/// Commands that print what the inventory contains. Their output is checked.
fn run_commands(target: &Target) -> Result<()> {
    let inventory = target.node.inventory();
    let inventory = inventory.to_str().context("the temporary folder has no UTF-8 name")?;
    for arguments in [
        &["devices"][..],
        &["devices", "--output", "json"],
        &["simulate"],
        &["simulate", "--output", "json"],
        &["doctor"],
    ] {
        let arguments = [arguments, &["--inventory", inventory]].concat();
        child_command::run(&target.program, &arguments)?;
    }
    Ok(())
}
