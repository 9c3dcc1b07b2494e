//! The options of `serve` that Windows stores: it starts this program with them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser};
use daemon::logging::LogArguments;

use crate::serve::ServeArguments;

/// How the name of the command is shown in messages about wrong options.
const SERVE: &str = "directx-device-plugin serve";

#[derive(Args, Debug)]
pub(super) struct StoredOptions {
    /// Options of `serve`
    #[arg(last = true, value_name = "SERVE_OPTION")]
    options: Vec<OsString>,
}

/// Run the daemon: register with the kubelet and serve devices
#[derive(Parser, Debug)]
#[command(name = SERVE)]
pub(super) struct ServeCommandLine {
    #[command(flatten)]
    pub(super) serve: ServeArguments,
    #[command(flatten)]
    pub(super) logs: LogArguments,
}

impl StoredOptions {
    /// The command line of `serve` with these options. Exits like every command with wrong ones.
    pub(super) fn parse(&self) -> ServeCommandLine {
        ServeCommandLine::parse_from([OsString::from(SERVE)].iter().chain(&self.options))
    }

    /// The arguments with which Windows starts this program.
    pub(super) fn launch_arguments(&self, log_file: Option<PathBuf>) -> Vec<OsString> {
        let mut arguments = ["service", "run", "--"].map(OsString::from).to_vec();
        arguments.extend(self.options.iter().cloned());
        if let Some(path) = log_file {
            arguments.extend(["--log-file".into(), path.into()]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use daemon::logging::LogDestination;

    use super::*;

    #[test]
    fn the_service_gets_the_options_and_a_log_file() {
        let options = ["--driver-model", "wddm", "--log-level", "debug"].map(OsString::from);
        let stored = StoredOptions { options: options.to_vec() };
        let arguments = stored.launch_arguments(Some("x.log".into()));
        assert_eq!(arguments[..3], ["service", "run", "--"]);
        assert_eq!(arguments[3..7], options);
        assert_eq!(arguments[7..], ["--log-file", "x.log"]);
        assert_eq!(stored.launch_arguments(None), arguments[..7]);
        let started = StoredOptions { options: arguments[3..].to_vec() }.parse();
        let LogDestination::File(log) = started.serve.daemon.log_destination() else {
            panic!("no log file");
        };
        assert_eq!(log, Path::new("x.log"));
    }
}
