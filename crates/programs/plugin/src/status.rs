//! `status`: whether the kubelet received the device lists of the daemon on this host.
//!
//! It queries the daemon over the daemon's own sockets, so that an exec probe detects a
//! daemon that hangs or was killed as well as one that waits for the kubelet.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use command_line::options::DriverModels;
use command_line::{Failure, OutputFormat};
use device_plugin::default_device_plugin_dir;
use plugin_status::answering_daemons::Answers;
use plugin_status::status::{Report, pod_uid};
use process::event_loop;

#[derive(Args, Debug)]
#[command(
    after_help = "Exits with 0 if a daemon responds and the kubelet received all its device \
                  lists, otherwise with 1, also if a device is in no list because its daemon waits \
                  for one with the same resource. With --live, a daemon must only respond: one that \
                  waits for the kubelet or for Windows needs no restart. If POD_UID is set, only \
                  a daemon with the same POD_UID counts."
)]
pub(crate) struct StatusArguments {
    /// Exit with 0 if a daemon responds, ready or not, for a liveness probe
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    models: DriverModels,
    /// The daemon's device plugin directory [default: the kubelet's default]
    #[arg(long, value_name = "DIR")]
    device_plugin_dir: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

pub(crate) fn run(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let directory = arguments.device_plugin_dir.clone().unwrap_or_else(default_device_plugin_dir);
    let models = &arguments.models.driver_models;
    let answers = event_loop::build()?.block_on(Answers::ask(&directory, models));
    let answers = answers.map_err(|error| {
        let what = format!("cannot read the device plugin directory `{}`", directory.display());
        Failure::runtime(anyhow::Error::new(error).context(what))
            .hint("set the daemon's directory with --device-plugin-dir")
    })?;
    let pod = pod_uid();
    let report = Report::of(answers, &pod);
    match arguments.output {
        OutputFormat::Text => command_line::print(&report.text(&directory, &pod))?,
        OutputFormat::Json => command_line::print_json(&report)?,
    }
    let succeeds = if arguments.live { report.live } else { report.ready };
    Ok(if succeeds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
