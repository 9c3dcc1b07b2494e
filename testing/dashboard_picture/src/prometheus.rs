//! A Prometheus that has imported scrapes and evaluates expressions about them.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

use crate::panel::{Kind, Query};
use crate::scrapes::{END, START};

/// What Grafana puts in place of its variables, for scrapes every 30 seconds.
const VARIABLES: [(&str, &str); 4] =
    [("$__rate_interval", "2m"), ("$__range", "1h"), ("$node", ".*"), ("$gpu", ".*")];

/// How long the start may take.
const START_LIMIT: Duration = Duration::from_secs(60);

/// One series of a result: its labels, and values with their times. An instant has one value.
pub(crate) struct Series {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) values: Vec<(f64, f64)>,
}

/// A running server, which `Drop` stops.
pub(crate) struct Prometheus {
    server: Child,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Imports `recording`, which has the format of `OpenMetrics` with times, and starts a server
    /// on the loopback interface.
    pub(crate) fn with(recording: &str) -> Result<Prometheus> {
        let folder = tempfile::tempdir()?;
        let (data, scrapes) = (folder.path().join("data"), folder.path().join("scrapes.om"));
        let config = folder.path().join("prometheus.yml");
        fs::write(&scrapes, recording)?;
        fs::write(&config, "{}\n")?;
        let mut import = Command::new("promtool");
        import.args(["tsdb", "create-blocks-from", "openmetrics"]).arg(&scrapes).arg(&data);
        output(&mut import)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let mut server = Command::new("prometheus");
        server.arg(format!("--config.file={}", config.display()));
        server.arg(format!("--storage.tsdb.path={}", data.display()));
        // The recording is older than the usual 15 days.
        server.args(["--storage.tsdb.retention.time=100y", "--log.level=error"]);
        server.arg(format!("--web.listen-address={address}"));
        let server = server.stdout(Stdio::null()).spawn().context("cannot run prometheus")?;
        let prometheus = Prometheus { server, url: format!("http://{address}"), _folder: folder };
        prometheus.wait()?;
        Ok(prometheus)
    }

    fn wait(&self) -> Result<()> {
        let end = Instant::now() + START_LIMIT;
        loop {
            let answer =
                output(Command::new("promtool").args(["query", "instant", &self.url, "1"]));
            match answer {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// The result of a query.
    pub(crate) fn evaluate(&self, query: &Query<'_>) -> Result<Vec<Series>> {
        let mut expression = query.expression.to_owned();
        for (variable, value) in VARIABLES {
            expression = expression.replace(variable, value);
        }
        let mut promtool = Command::new("promtool");
        promtool.args(["query", "--format=json"]);
        match query.kind {
            Kind::TimeSeries => promtool
                .arg("range")
                .args([format!("--start={START}"), format!("--end={END}")])
                .arg("--step=60s"),
            Kind::Stat | Kind::Table => promtool.arg("instant").arg(format!("--time={END}")),
        };
        let text = output(promtool.args([&self.url, &expression]))?;
        let result: Value = serde_json::from_str(&text)?;
        Ok(result.as_array().into_iter().flatten().map(series).collect())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn series(json: &Value) -> Series {
    let labels = json["metric"].as_object().into_iter().flatten();
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    let pair = |pair: &Value| Some((number(&pair[0])?, number(&pair[1])?));
    let values = match json["values"].as_array() {
        Some(values) => values.iter().filter_map(pair).collect(),
        None => pair(&json["value"]).into_iter().collect(),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Series { labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(), values }
}

/// The output of a program that succeeds.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let result = command.output().with_context(|| format!("cannot run {name}"))?;
    if !result.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&result.stderr));
    }
    Ok(String::from_utf8(result.stdout)?)
}
