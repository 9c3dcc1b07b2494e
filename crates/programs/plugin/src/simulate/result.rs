//! The result of a simulation, and its text.

use command_line::verdict::{BAD, GOOD, WARNING};
use device_plugin::v1beta1::Mount;
use host::printable::printable;
use kubelet_double::{ContainerView, ResourceView};
use report::{Condition, Labels};

use crate::simulate::explain::{Explanation, Note};
use crate::simulate::pod_argument::PodArgument;
use crate::simulate::simulated_host::{SimulatedHost, Source};

pub(crate) struct Report {
    pub(crate) host: SimulatedHost,
    /// What the node would advertise.
    pub(crate) resources: Vec<ResourceView>,
    /// What each pod would get.
    pub(crate) pods: Vec<SimulatedPod>,
    /// The labels of the node.
    pub(crate) labels: Labels,
    /// The conditions of the node, before any pod is admitted.
    pub(crate) conditions: [Condition; 2],
    pub(crate) notes: Vec<String>,
    /// What to do about the notes. Only in the text.
    pub(crate) hints: Vec<String>,
}

pub(crate) struct SimulatedPod {
    pub(crate) pod: PodArgument,
    /// What the container runtime gets for its container, or the kubelet's reason for refusing it.
    pub(crate) outcome: Result<ContainerView, String>,
    /// Which device, which files, and why.
    pub(crate) explanation: Explanation,
}

impl SimulatedPod {
    /// The IDs of the allocated devices, in the order of the requests.
    pub(crate) fn device_ids(&self) -> Vec<&String> {
        let Ok(container) = &self.outcome else { return Vec::new() };
        let requests = self.pod.requests.iter();
        let ids = requests.filter_map(|r| container.device_ids.get(r.resource.as_str()));
        ids.flatten().collect()
    }
}

/// How many similar lines the text has without `--verbose`.
const SIMILAR_LINES: usize = 10;

impl Report {
    /// With `shows_node`, the text has the labels and conditions of the node.
    pub(crate) fn text(&self, verbose: bool, shows_node: bool) -> String {
        let limit = if verbose { usize::MAX } else { SIMILAR_LINES };
        let mut lines = vec![self.host_line()];
        for ResourceView { name, capacity, allocatable, devices } in &self.resources {
            lines.push(format!("{name}: capacity {capacity}, allocatable {allocatable}"));
            let shown: Vec<String> = devices
                .iter()
                .filter(|slot| verbose || slot.health == "Unhealthy")
                .map(|slot| format!("  {:<9}  {}", slot.health, printable(&slot.id)))
                .collect();
            lines.extend(similar(shown.into_iter(), limit));
        }
        lines.push(String::new());
        lines.extend(self.table());
        lines.extend(self.file_counts());
        if verbose {
            for pod in &self.pods {
                lines.push(String::new());
                lines.extend(pod.lines());
            }
        }
        if shows_node {
            lines.push(String::new());
            lines.extend(self.node_lines());
        }
        if !self.notes.is_empty() {
            lines.push(String::new());
        }
        let notes = self.notes.iter().map(|note| format!("note: {}", printable(note)));
        lines.extend(similar(notes, limit));
        lines.extend(self.hints.iter().map(|hint| format!("hint: {}", printable(hint))));
        if !verbose && self.pods.iter().any(|pod| pod.outcome.is_ok()) {
            lines.push(String::new());
            let what = "--verbose shows each pod's device entry, files and variables, and the \
                        node's labels and conditions";
            lines.push(what.to_owned());
        }
        lines.join("\n") + "\n"
    }

    fn host_line(&self) -> String {
        let SimulatedHost { snapshot, source, .. } = &self.host;
        let host = &snapshot.host;
        let product = printable(host.product.as_deref().unwrap_or("unknown version of Windows"));
        let build = match host.build {
            Some(build) => format!(", build {build}"),
            None => ", build unknown".to_owned(),
        };
        let source = match source {
            Source::Inventory(path) => path.display().to_string(),
            Source::Demonstration => "a recorded host for demonstration, not this one".to_owned(),
            Source::MadeUp => "a made-up host, not this one".to_owned(),
        };
        let count = snapshot.adapters.len();
        let source = printable(&source);
        let s = if count == 1 { "" } else { "s" };
        format!("host: {product}{build}, {count} adapter{s} ({source})")
    }

    /// Who names the files that the table counts, where it is not only the driver.
    fn file_counts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for SimulatedPod { outcome, explanation, .. } in &self.pods {
            let Ok(container) = outcome else { continue };
            let sources = explanation.files.join(" and ");
            let line = format!("{} files: {sources}", container.mounts.len());
            if sources.contains(',') && !lines.contains(&line) {
                lines.push(line);
            }
        }
        lines
    }

    /// What the node object says of the devices.
    fn node_lines(&self) -> Vec<String> {
        let mut lines = vec!["labels of the node".to_owned()];
        lines.extend(self.labels.iter().map(|(name, value)| format!("  {name}={value}")));
        lines.push("conditions of the node".to_owned());
        for Condition { kind, status, reason, message } in &self.conditions {
            let state = format!("{}={status}", kind.name());
            // The longest one is `DirectXDevicesHealthy=Unknown`.
            lines.push(format!("  {state:<29}  {reason}: {}", printable(message.own())));
        }
        lines
    }

    /// A row for each pod.
    fn table(&self) -> Vec<String> {
        if self.pods.is_empty() {
            let is_advertised = self.resources.iter().any(|resource| resource.capacity > 0);
            let state = if is_advertised { "healthy" } else { "advertised" };
            return vec![format!(
                "{BAD}no device of this host is {state}{BAD:#}, so there is no pod to simulate"
            )];
        }
        let rows: Vec<Row> = self.pods.iter().map(SimulatedPod::row).collect();
        let width = |head: &str, cell: fn(&Row) -> &str| {
            let cells = rows.iter().map(|row| cell(row).chars().count());
            cells.chain([head.len()]).max().unwrap_or_default()
        };
        let pods = width("pod", |row| &row.pod);
        let devices = width("device", |row| &row.devices);
        let files = width("files", |row| &row.files);
        let head =
            format!("{:pods$}  admitted  {:devices$}  {:files$}  why", "pod", "device", "files");
        let mut lines = vec![head];
        for Row { pod, is_admitted, devices: device, files: file, why, below } in &rows {
            let (style, word) = if *is_admitted { (GOOD, "yes") } else { (BAD, "no") };
            let admitted =
                format!("{style}{word}{style:#}{:1$}", "", "admitted".len() - word.len());
            lines.push(
                format!("{pod:pods$}  {admitted}  {device:devices$}  {file:files$}  {why}")
                    .trim_end()
                    .to_owned(),
            );
            lines.extend(below.iter().map(|line| format!("{:pods$}  {line}", "")));
        }
        lines
    }
}

/// A pod in the table.
struct Row {
    pod: String,
    is_admitted: bool,
    devices: String,
    files: String,
    why: String,
    /// Lines that are too long for a column.
    below: Vec<String>,
}

/// At most `limit` of these lines, and how many more there are.
fn similar(lines: impl ExactSizeIterator<Item = String>, limit: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(limit);
    let mut shown: Vec<String> = lines.take(limit).collect();
    if more > 0 {
        shown.push(format!("           … and {more} more (--verbose shows all)"));
    }
    shown
}

impl SimulatedPod {
    fn row(&self) -> Row {
        let Explanation { notes, devices, .. } = &self.explanation;
        let files = match &self.outcome {
            Ok(container) => container.mounts.len().to_string(),
            Err(_) => "-".to_owned(),
        };
        let devices = if devices.is_empty() { "-".to_owned() } else { devices.join(" and ") };
        let mut why: Vec<String> = notes.iter().filter_map(in_short).collect();
        why.dedup();
        let mut below: Vec<String> =
            notes.iter().filter(|note| is_long(note)).map(styled).collect();
        below.extend(self.outcome.as_ref().err().map(|reason| printable(reason).into_owned()));
        let missing = notes.iter().filter(|note| matches!(note, Note::NotMounted(_))).count();
        if missing > 0 {
            let files = "files that are not mounted";
            below.push(format!("{WARNING}warning{WARNING:#}: {files}: {missing}"));
        }
        Row {
            pod: printable(&self.pod.name).into_owned(),
            is_admitted: self.outcome.is_ok(),
            devices: shortened(&printable(&devices)),
            files,
            why: why.join("; "),
            below,
        }
    }

    /// Every detail.
    fn lines(&self) -> Vec<String> {
        let PodArgument { name, requests } = &self.pod;
        let counts: Vec<String> =
            requests.iter().map(|r| format!("{} of {}", r.count, r.resource)).collect();
        let title = format!("pod {} requests {}", printable(name), counts.join(", "));
        let mut lines = match &self.outcome {
            Ok(container) => {
                let admitted = format!("{title}: {GOOD}admitted{GOOD:#}");
                [vec![admitted], self.container_lines(container)].concat()
            }
            Err(reason) => vec![
                format!("{title}: {BAD}refused{BAD:#}"),
                format!("  reason   {}", printable(reason)),
            ],
        };
        lines.extend(
            self.explanation.notes.iter().map(|note| format!("  why      {}", styled(note))),
        );
        lines
    }

    fn container_lines(&self, container: &ContainerView) -> Vec<String> {
        let ids = self.device_ids().into_iter();
        let mut lines: Vec<String> =
            ids.map(|id| format!("  replica  {}", printable(id))).collect();
        let devices = container.devices.iter().map(|device| &device.host_path);
        lines.extend(devices.map(|device| format!("  device   {}", printable(device))));
        let counts = self.explanation.files.iter().filter(|files| !files.is_empty());
        lines.extend(counts.map(|files| format!("  files    {files}")));
        for mounts in container.mounts.chunk_by(|a, b| folder(a) == folder(b)) {
            lines.push(format!("  files    from {}", printable(folder(&mounts[0]))));
            lines.extend(mounts.iter().map(|mount| {
                let file = printable(split(&mount.host_path).1);
                format!("             {file} -> {}", printable(&mount.container_path))
            }));
        }
        for (name, value) in &container.envs {
            lines.push(format!("  env      {name}={}", printable(value)));
        }
        for (name, value) in &container.annotations {
            lines.push(format!("  annotate {name}={}", printable(value)));
        }
        lines
    }
}

/// The text of a cell. It may contain names of drivers, which can be long.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text of a note for the column *why*; `None` for a note that does not fit into it.
fn in_short(note: &Note) -> Option<String> {
    match note {
        Note::Devices { sharing, .. } => Some(match sharing.replicas.get() {
            1 => "exclusive".to_owned(),
            n => format!("shared by up to {n}"),
        }),
        Note::Refused { why, .. } => Some(why.clone()),
        Note::UnknownResource(_) => Some("unknown resource".to_owned()),
        _ => None,
    }
}

/// Whether the table has the note in a line below the row.
fn is_long(note: &Note) -> bool {
    match note {
        Note::Exception(_) | Note::UnknownResource(_) | Note::Warning(_) | Note::Hint(_) => true,
        Note::Devices { .. }
        | Note::Decision(_)
        | Note::Refused { .. }
        | Note::NotMounted(_)
        | Note::LeftOut(_) => false,
    }
}

fn styled(note: &Note) -> String {
    match note {
        Note::Warning(text) => format!("{WARNING}warning{WARNING:#}: {}", printable(text)),
        other => printable(&other.to_string()).into_owned(),
    }
}

fn folder(mount: &Mount) -> &str {
    split(&mount.host_path).0
}

/// The folder and the file name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once(['\\', '/']).unwrap_or(("", path))
}
