//! The configurations that are rejected.

use node::daemon::config_reload::ReloadStatus;
use tokio::sync::watch;

/// The configurations that cannot be used.
pub(crate) struct Rejections {
    status: watch::Receiver<ReloadStatus>,
    seen: u64,
}

impl Rejections {
    pub(crate) fn of(status: watch::Receiver<ReloadStatus>) -> Rejections {
        Rejections { status, seen: 0 }
    }

    /// Why the newest configuration is not active. Nothing is lost if this is dropped before it
    /// completes.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            let seen = self.seen;
            let Ok(status) = self.status.wait_for(|status| status.rejected > seen).await else {
                // The owner of the configuration ends, and this program with it.
                return std::future::pending().await;
            };
            self.seen = status.rejected;
            if let Some(error) = status.last_error.clone() {
                return error;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_rejection_is_returned_once_also_one_before_the_start() {
        let rejected = |rejected, error: Option<&str>| ReloadStatus {
            rejected,
            last_error: error.map(str::to_owned),
            ..ReloadStatus::default()
        };
        let (send, receive) = watch::channel(rejected(1, Some("first")));
        let mut rejections = Rejections::of(receive);
        assert_eq!(rejections.next().await, "first");
        let wait = Duration::from_secs(1);
        assert!(tokio::time::timeout(wait, rejections.next()).await.is_err());
        send.send_replace(rejected(1, None));
        assert!(tokio::time::timeout(wait, rejections.next()).await.is_err());
        send.send_replace(rejected(2, Some("second")));
        assert_eq!(rejections.next().await, "second");
    }
}
