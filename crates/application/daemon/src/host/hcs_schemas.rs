//! The schema versions of the Host Compute Service, which cannot change while the host runs.
//!
//! The service is asked at most once a minute until it answers, on a separate thread: it can
//! hang. Until then the Windows build decides whether containers get devices by location path.

use std::sync::Arc;
use std::time::Duration;

use command_line::error_chain;
use devices::HcsSchema;
use tokio::time::{Instant, sleep_until};
use win32::hcs::HcsError;

use crate::host::background_query::BackgroundQuery;

/// Asks the service. It blocks, perhaps forever.
pub type ReadHcsSchemas = Arc<dyn Fn() -> Result<Vec<HcsSchema>, HcsError> + Send + Sync>;

/// The delay between two queries.
const INTERVAL: Duration = Duration::from_mins(1);

/// Asks the service, where there is one.
pub(crate) struct HcsSchemaReader {
    read: Option<ReadHcsSchemas>,
    query: BackgroundQuery<Result<Vec<HcsSchema>, HcsError>>,
    ask_at: Option<Instant>,
}

impl HcsSchemaReader {
    /// A reader that asks `read` at once, or never answers.
    #[must_use]
    pub(crate) fn new(read: Option<ReadHcsSchemas>) -> HcsSchemaReader {
        let effect = "the Windows build decides whether containers get devices by location path";
        let ask_at = read.as_ref().map(|_| Instant::now());
        HcsSchemaReader { read, query: BackgroundQuery::new("HCS", effect), ask_at }
    }

    /// The schemas, once. Never completes a second time.
    pub(crate) async fn next(&mut self) -> Vec<HcsSchema> {
        loop {
            if let (Some(at), Some(read)) = (self.ask_at, &self.read) {
                sleep_until(at).await;
                self.ask_at = None;
                let read = Arc::clone(read);
                self.query.start(move || read());
            }
            match self.query.answer().await {
                Ok(schemas) => return schemas,
                Err(error) => {
                    tracing::debug!(reason = error_chain(&error), "schema versions unavailable");
                    let is_installed = !matches!(error, HcsError::Missing(_));
                    self.ask_at = is_installed.then(|| Instant::now() + INTERVAL);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    type Answer = Result<Vec<HcsSchema>, HcsError>;

    const SCHEMA: HcsSchema = HcsSchema { major: 2, minor: 5 };

    /// A service with these answers, the last first, and the number of its queries.
    fn service(answers: Vec<Answer>) -> (HcsSchemaReader, Arc<AtomicUsize>) {
        let answers = Mutex::new(answers);
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let read = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            answers.lock().unwrap().pop().unwrap()
        };
        (HcsSchemaReader::new(Some(Arc::new(read))), count)
    }

    fn refused() -> Answer {
        Err(HcsError::Refused(io::ErrorKind::PermissionDenied.into()))
    }

    async fn is_silent_for(reader: &mut HcsSchemaReader, seconds: u64) -> bool {
        tokio::time::timeout(Duration::from_secs(seconds), reader.next()).await.is_err()
    }

    /// Lets the reader run until the first query has failed.
    async fn run_first_query(reader: &mut HcsSchemaReader, count: &AtomicUsize) {
        let started = std::time::Instant::now();
        while count.load(Ordering::SeqCst) == 0 || reader.query.is_running() {
            let answer = tokio::time::timeout(Duration::from_millis(10), reader.next()).await;
            assert!(answer.is_err() && started.elapsed() < Duration::from_mins(1));
        }
    }

    #[tokio::test]
    async fn the_service_is_asked_again_after_a_minute_until_it_answers() {
        let (mut reader, count) = service(vec![Ok(vec![SCHEMA]), refused()]);
        let began = Instant::now();
        run_first_query(&mut reader, &count).await;
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let ask_at = reader.ask_at.expect("it is asked again");
        assert!(ask_at >= began + INTERVAL && ask_at <= Instant::now() + INTERVAL);
        tokio::time::pause();
        tokio::time::advance(INTERVAL).await;
        tokio::time::resume();
        assert_eq!(reader.next().await, [SCHEMA]);
        tokio::time::pause();
        assert!(is_silent_for(&mut reader, 3600).await);
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_service_that_is_not_installed_is_asked_once() {
        let missing = HcsError::Missing(io::ErrorKind::NotFound.into());
        let (mut reader, count) = service(vec![Err(missing)]);
        run_first_query(&mut reader, &count).await;
        assert_eq!(reader.ask_at, None);
        assert!(!reader.query.is_running());
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_service_hangs_it_is_not_asked_again() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = Mutex::new(released);
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let read = move || {
            counter.fetch_add(1, Ordering::SeqCst);
            released.lock().unwrap().recv().unwrap();
            Ok(vec![SCHEMA])
        };
        let mut reader = HcsSchemaReader::new(Some(Arc::new(read)));
        assert!(is_silent_for(&mut reader, 3600).await);
        tokio::time::resume();
        release.send(()).unwrap();
        assert_eq!(reader.next().await, [SCHEMA]);
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}
