//! What the plugin logs while kubelets come and go.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use device_plugin::{Identity, KUBELET_SOCKET, Listener, Resource, Transport};
use kubelet_double::{
    Faults, InMemory, KubeletDouble, KubeletOptions, MemoryListener, RegisterFault, StreamFault,
};
use tokio::io::DuplexStream;
use tokio::time::{sleep, timeout};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

use crate::plugin::{DIRECTORY, Devices, GPU, Node, Plugin};

/// The log lines of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> (Log, DefaultGuard) {
        // While there is only one subscriber, a line that another thread logs first is off for every
        // thread if that other thread has no subscriber.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .with_max_level(tracing::Level::INFO)
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self, level: &str, text: &str) -> usize {
        self.text().lines().filter(|line| line.contains(level) && line.contains(text)).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A host on which a new file looks like the one that it replaces, as on Windows for some seconds.
#[derive(Clone)]
struct SameIdentities(InMemory);

impl Transport for SameIdentities {
    type Stream = DuplexStream;
    type Listener = MemoryListener;
    type Lock = <InMemory as Transport>::Lock;

    fn bind(&self, path: &Path) -> io::Result<MemoryListener> {
        self.0.bind(path)
    }

    fn connect(&self, path: &Path) -> impl Future<Output = io::Result<DuplexStream>> + Send {
        self.0.connect(path)
    }

    fn identity(&self, path: &Path) -> io::Result<Option<Identity>> {
        Ok(self.0.identity(path)?.map(|_| Identity::listed([1, 0])))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(directory)
    }

    fn lock(&self, directory: &Path, name: &str) -> io::Result<Self::Lock> {
        self.0.lock(directory, name)
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_of_the_kubelet_cause_no_warning() {
    let host = Node::new().host;
    let mut kubelet =
        KubeletDouble::start(host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let gpus: Arc<dyn Resource> = Devices::new(GPU, "gpu", 2);
    let (log, _guard) = Log::start();
    let plugin = Plugin::run(SameIdentities(host), DIRECTORY, vec![gpus]);
    plugin.wait_until_ready().await;
    for _ in 0..8 {
        kubelet.stop().await;
        sleep(Duration::from_secs(1)).await;
        kubelet.start_again().unwrap();
        timeout(Duration::from_secs(1), kubelet.wait_for_lists(&[GPU])).await.unwrap();
        plugin.wait_until_ready().await;
        sleep(Duration::from_secs(3)).await;
    }
    let text = log.text();
    assert_eq!(log.lines("WARN", ""), 0, "{text}");
    assert!(log.lines("INFO", "waiting for kubelet") > 0, "{text}");
    assert_eq!(log.lines("INFO", "registered with kubelet"), 9, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_stays_away_causes_a_warning() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let (log, _guard) = Log::start();
    let _plugin = node.run();
    sleep(Duration::from_secs(25)).await;
    let text = log.text();
    assert_eq!(log.lines("WARN", ""), 0, "{text}");
    assert_eq!(log.lines("INFO", "waiting for kubelet"), 1, "{text}");
    sleep(Duration::from_secs(12)).await;
    let text = log.text();
    assert_eq!(log.lines("WARN", "waiting for kubelet"), 1, "{text}");
    assert!(text.contains("kubelet.sock` does not exist") && text.contains(GPU), "{text}");
}

/// A lock that is given up and taken again would be a warning, and another daemon could take it.
#[tokio::test(start_paused = true)]
async fn a_daemon_keeps_its_locks() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2).require("gpus");
    let _kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let (log, _guard) = Log::start();
    let plugin = node.run();
    plugin.wait_until_ready().await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(log.lines("WARN", ""), 0, "{}", log.text());
}

/// A plugin of another maker that registers the same resource makes the kubelet end the stream.
#[tokio::test(start_paused = true)]
async fn another_plugin_is_reported_once_and_not_fought() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let stream = StreamFault::DropAfter(Duration::from_secs(1));
    kubelet.set_faults(Faults { stream, ..Faults::default() });
    let _other = node.host.bind(&Path::new(DIRECTORY).join("other.sock")).unwrap();
    let (log, _guard) = Log::start();
    let _plugin = node.run();
    sleep(Duration::from_mins(10)).await;
    let text = log.text();
    let warning = "kubelet keeps closing the ListAndWatch stream";
    assert_eq!((log.lines("WARN", warning), log.lines("WARN", "")), (1, 1), "{text}");
    let line = text.lines().find(|line| line.contains(warning)).unwrap();
    for part in [GPU, "streams=5", "other_sockets=\"other.sock\"", "only one device plugin"] {
        assert!(line.contains(part), "{line}");
    }
    let registrations = kubelet.registrations(GPU);
    assert!((20..30).contains(&registrations), "{registrations}");
}

/// Kubelets name the socket in some refusals, and it is another one each time.
#[tokio::test(start_paused = true)]
async fn refusals_that_differ_only_in_their_words_are_one_line_in_ten_minutes() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let kubelet =
        KubeletDouble::start(node.host.clone(), DIRECTORY, KubeletOptions::default()).unwrap();
    let (log, _guard) = Log::start();
    let refuse = |text: String| {
        kubelet.set_faults(Faults { register: RegisterFault::Refuse(text), ..Faults::default() });
    };
    refuse("failed to get device plugin options".to_owned());
    let plugin = node.run();
    for number in 0..25 {
        refuse(format!("failed to get device plugin options: dial unix gpu-{number}.sock"));
        sleep(Duration::from_secs(20)).await;
    }
    assert_eq!(log.lines("WARN", "registration failed"), 1, "{}", log.text());
    assert!(plugin.last_error().unwrap().contains("gpu-2"), "the newest text");
    refuse("requested API version \"v1beta1\" is not supported".to_owned());
    sleep(Duration::from_secs(40)).await;
    assert_eq!(log.lines("WARN", "registration failed"), 2, "{}", log.text());
}

/// The texts of libraries' errors contain internals, which say nothing to an administrator.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_reported_in_words() {
    let mut node = Node::new();
    node.add(GPU, "gpu", 2);
    let mut listener = node.host.bind(&Path::new(DIRECTORY).join(KUBELET_SOCKET)).unwrap();
    let (log, _guard) = Log::start();
    let plugin = node.run();
    for wait in [0, 10] {
        let connection = listener.accept().await.unwrap();
        sleep(Duration::from_millis(wait)).await;
        drop(connection);
        sleep(Duration::from_millis(50)).await;
        let error = plugin.last_error().unwrap();
        let words = "kubelet closed the connection before it answered: ";
        assert!(error.starts_with(words), "{error}");
        for internal in ["source:", "hyper::", "Custom", "Error(", "metadata", "Status"] {
            assert!(!error.contains(internal), "{error}");
        }
    }
    assert!(log.lines("WARN", "registration failed; retrying") > 0, "{}", log.text());
}
