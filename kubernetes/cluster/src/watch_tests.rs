//! When a watch begins again after its end.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::{NodeWatch, TestServer};

/// How many watches begin within a minute if the server ends each one at once.
async fn ended_watches_in_a_minute() -> usize {
    let server = TestServer::new(json!({}));
    let (client, mut watch) = (server.client(), NodeWatch::new("node-1"));
    let ends = async {
        loop {
            watch.next(&client).await.unwrap();
            server.end_watches();
        }
    };
    assert!(timeout(Duration::from_secs(60), ends).await.is_err());
    server.requests().len()
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_begin_again_after_growing_pauses() {
    let count = ended_watches_in_a_minute().await;
    // The limits are 4, 8, 16, 32 and 60 s, and a pause is at least an eighth of its limit.
    assert!((4..=12).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn the_watches_of_many_nodes_that_end_together_do_not_begin_together() {
    let mut pauses = HashSet::new();
    for _ in 0..20 {
        let server = TestServer::new(json!({}));
        let (client, mut watch) = (server.client(), NodeWatch::new("node-1"));
        watch.next(&client).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        server.end_watches();
        let ended = Instant::now();
        watch.next(&client).await.unwrap();
        let pause = ended.elapsed();
        assert!(
            pause >= Duration::from_millis(500) && pause <= Duration::from_secs(4),
            "{pause:?}"
        );
        pauses.insert(pause);
    }
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_lasted_begins_again_soon() {
    let server = TestServer::new(json!({}));
    let (client, mut watch) = (server.client(), NodeWatch::new("node-1"));
    for _ in 0..10 {
        watch.next(&client).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        server.end_watches();
    }
    let ended = Instant::now();
    watch.next(&client).await.unwrap();
    assert!(ended.elapsed() <= Duration::from_secs(4), "{:?}", ended.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_says_when_it_begins_again() {
    let server = TestServer::new(json!({}));
    let (client, mut watch) = (server.client(), NodeWatch::new("node-1"));
    assert_eq!(watch.pause(), Duration::ZERO);
    watch.next(&client).await.unwrap();
    server.kill();
    for limit in [4, 8, 16, 32, 60] {
        watch.next(&client).await.unwrap_err();
        let (pause, limit) = (watch.pause(), Duration::from_secs(limit));
        assert!(pause >= limit / 8 && pause <= limit, "{pause:?} of {limit:?}");
    }
    server.start();
    let (pause, failed) = (watch.pause(), Instant::now());
    watch.next(&client).await.unwrap();
    assert!(failed.elapsed() >= pause);
}
