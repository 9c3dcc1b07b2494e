//! `--listen`: metrics and probes over HTTP.
//!
//! They are served on a separate thread, so that no client delays the rest of the program.
//! If the port is in use, the program continues and retries.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::timeout;

use self::server::{LIFETIME, serve};
use crate::ProcessError;
use crate::event_loop;
use crate::logging::Repeated;

mod address;
mod server;

pub use self::address::parse as parse_address;
pub use self::server::{Answer, Page, page, text};

/// How long to wait until listening is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// How long the thread of an event loop may take to show that it runs.
const ALIVE_LIMIT: Duration = Duration::from_secs(2);

/// Starts to answer requests, on a separate thread. `pages` is what exists, for the log.
///
/// # Errors
/// The operating system refuses the thread. A port that is in use is not an error.
pub fn serve_pages(
    address: SocketAddr,
    pages: &'static str,
    answer: Answer,
) -> Result<(), ProcessError> {
    let event_loop = event_loop::build()?;
    std::thread::Builder::new()
        .name("monitoring".to_owned())
        .spawn(move || event_loop.block_on(listen(address, pages, answer)))
        .map_err(|source| ProcessError::System { what: "start the thread for --listen", source })?;
    Ok(())
}

async fn listen(address: SocketAddr, pages: &str, answer: Answer) {
    let mut failures = Repeated::default();
    loop {
        let ended = async { serve(bind(address, pages)?, LIFETIME, &answer).await };
        if let Err(error) = ended.await
            && failures.is_due(error.to_string())
        {
            tracing::error!(
                %address,
                %error,
                hint = "stop the process that uses the port, or choose another one with --listen",
                "cannot listen for metrics and probes; retrying"
            );
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn bind(address: SocketAddr, pages: &str) -> io::Result<TcpListener> {
    let listener = address::bind(address)?;
    // The port may have been chosen by the operating system.
    let address = listener.local_addr()?;
    tracing::info!(%address, "serving {pages}");
    Ok(listener)
}

/// Whether the event loop of a program runs, which is not the one that serves this page.
pub async fn health(event_loop: &Handle) -> Page {
    let turn = event_loop.spawn(async {});
    if let Ok(Ok(())) = timeout(ALIVE_LIMIT, turn).await {
        return text(StatusCode::OK, "ok\n");
    }
    let reason = format!("the event loop is blocked for more than {ALIVE_LIMIT:?}\n");
    text(StatusCode::SERVICE_UNAVAILABLE, reason)
}

/// The page at `/`, with links to the pages that every program has, and the answer to other paths.
#[must_use]
pub fn other_page(program: &str, path: &str) -> Page {
    if path != "/" {
        return text(StatusCode::NOT_FOUND, "no such page\n");
    }
    // The links are relative, for proxies that serve the pages below another path.
    let html = format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <meta charset=\"utf-8\">\n\
         <title>{program}</title>\n\
         <h1>{program}</h1>\n\
         <ul>\n\
         <li><a href=\"metrics\">metrics</a></li>\n\
         <li><a href=\"readyz\">readyz</a>: whether it is ready, and otherwise why not</li>\n\
         <li><a href=\"healthz\">healthz</a>: whether it runs</li>\n\
         </ul>\n"
    );
    page(StatusCode::OK, "text/html; charset=utf-8", html.into())
}
