//! Bluesky: Jetstream on the simulator, and on misbehaving hosts.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use domain::{Post, Timestamp};
use futures::{SinkExt, StreamExt};
use platform_simulator::{Fault, FaultKind, NewPost, Simulator};
use platforms::{
    Adapter, Cursor, Direct, Fetch, PollError, PollLimits, Polled, Unlimited,
    bluesky::{Jetstream, Waits},
};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_async, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
    },
};
use url::Url;

use crate::platform::{Feed, post};

const BLUESKY: &str = "bluesky";
const FEED: &str = "jetstream";

/// A stream with short timeouts.
struct Stream {
    simulator: Simulator,
    adapter: Jetstream,
    cursor: Option<Cursor>,
}

fn quick(hosts: Vec<Url>) -> Jetstream {
    Jetstream::new(hosts, None, Arc::new(Unlimited)).with_waits(Waits {
        // The simulator has its own threads, which a busy machine may run late.
        gather: Duration::from_millis(300),
        idle: Duration::from_millis(500),
        silence: Duration::from_millis(600),
        ..Waits::default()
    })
}

fn url(simulator: &Simulator) -> Url {
    let url = format!("{}/bluesky", simulator.base_url()).replace("http", "ws");
    url.parse().unwrap()
}

impl Stream {
    fn new() -> Self {
        let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            adapter: quick(vec![url(&simulator)]),
            simulator,
            cursor: None,
        }
    }

    fn publish(&self, posts: impl IntoIterator<Item = NewPost>) -> Vec<u64> {
        let published = self.simulator.publish(posts.into_iter().collect());
        published.into_iter().map(|one| one.id).collect()
    }

    async fn try_poll(&mut self) -> Result<Polled, PollError> {
        let limits = PollLimits {
            since: Some(Timestamp::now().minus(Duration::from_hours(24))),
            ..PollLimits::default()
        };
        let polled = self
            .adapter
            .poll(FEED, self.cursor.as_ref(), &limits)
            .await?;
        self.cursor = Cursor::from_json(&polled.cursor.to_json());
        assert_eq!(self.cursor.as_ref(), Some(&polled.cursor));
        assert!(polled.more && polled.posts.is_sorted_by_key(|post| post.time));
        Ok(polled)
    }

    async fn poll(&mut self) -> Polled {
        self.try_poll().await.unwrap()
    }

    /// Polls until nothing more comes.
    async fn all(&mut self) -> Vec<Post> {
        let mut all = Vec::new();
        loop {
            let before = self.cursor.clone();
            all.extend(self.poll().await.posts);
            if self.cursor == before {
                return all;
            }
        }
    }

    fn connections(&self) -> u64 {
        self.simulator.requests("/bluesky/subscribe")
    }
}

fn texts(posts: &[Post]) -> Vec<String> {
    posts
        .iter()
        .map(|post| post.text.clone().unwrap_or_default())
        .collect()
}

fn numbered(numbers: std::ops::Range<usize>) -> Vec<NewPost> {
    numbers
        .map(|n| post(BLUESKY, format!("post {n}")))
        .collect()
}

#[tokio::test]
async fn a_post_carries_every_field_and_its_author_s_handle() {
    let mut feed = Feed::new("bluesky:jetstream");
    feed.publish([
        NewPost {
            url: Some("https://example.com/notes".into()),
            text: Some("anyone moved off HubSpot?".into()),
            ..post(BLUESKY, "CRM notes")
        },
        NewPost {
            author: "unindexed".into(),
            ..post(BLUESKY, "leave me alone")
        },
    ]);
    let given = feed.poll().await.posts;
    assert_eq!(
        texts(&given),
        ["anyone moved off HubSpot?\nCRM notes\nhttps://example.com/notes"]
    );
    let json = serde_json::to_value(&given[0]).unwrap();
    assert_eq!(json["type"], "MICROBLOG_TWEET");
    assert_eq!(json["user"]["name"], "ana.bsky.social");
    let did = json["user"]["id"].as_str().unwrap();
    let rkey = given[0]
        .id
        .strip_prefix(&format!("at://{did}/app.bsky.feed.post/"))
        .unwrap();
    assert_eq!(
        json["url"],
        format!("https://bsky.app/profile/{did}/post/{rkey}")
    );
    assert!(json.get("title").is_none());
    // An author whose handle cannot be looked up is named by the DID, and the post is not delayed.
    feed.simulator
        .fail(Fault::new(BLUESKY, FaultKind::Status, 500).on("getProfiles"));
    feed.publish([NewPost {
        author: "ben".into(),
        ..post(BLUESKY, "hello")
    }]);
    let given = feed.poll().await.posts;
    assert_eq!(given[0].user.name, given[0].user.id);
}

#[tokio::test]
async fn polls_share_one_connection_and_report_deletions() {
    let mut stream = Stream::new();
    assert!(stream.poll().await.posts.is_empty());
    let ids = stream.publish(numbered(0..1_000));
    assert_eq!(stream.all().await.len(), 1_000);
    stream.simulator.edit(ids[1], "changed");
    stream.simulator.delete(ids[2]);
    let gone = stream.publish(numbered(1_000..1_001))[0];
    stream.simulator.delete(gone);
    let polled = stream.poll().await;
    assert!(polled.posts.is_empty());
    assert_eq!(polled.deleted.len(), 2);
    assert!(polled.deleted[0].starts_with("at://did:plc:"));
    stream.simulator.end_account("ana");
    assert!(stream.poll().await.posts.is_empty());
    assert_eq!(stream.connections(), 1);
}

#[tokio::test]
async fn broken_stream_is_resumed_at_its_position() {
    let mut stream = Stream::new();
    stream.poll().await;
    stream.publish(numbered(0..300));
    let mut given = stream.all().await;
    for (round, close_after) in [None, Some(50), Some(400), None].into_iter().enumerate() {
        stream.simulator.cut_streams(close_after);
        stream.publish(numbered((round + 1) * 300..(round + 2) * 300));
        for _ in 0..30 {
            match stream.try_poll().await {
                Ok(polled) => given.extend(polled.posts),
                // After fifty events without progress, the host removes its limit.
                Err(_) => stream.simulator.cut_streams(None),
            }
        }
    }
    let mut texts = texts(&given);
    assert_eq!(texts.len(), 1_500);
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 1_500);
}

#[tokio::test]
async fn other_replica_and_lost_commit_resume_at_the_stored_cursor() {
    let mut stream = Stream::new();
    stream.poll().await;
    stream.publish(numbered(0..10));
    assert_eq!(stream.all().await.len(), 10);
    stream.publish(numbered(10..20));
    let before = stream.cursor.clone();
    assert_eq!(stream.all().await.len(), 10);
    // The transaction failed: the same cursor comes again, and so do the posts.
    stream.cursor = before;
    assert_eq!(stream.all().await.len(), 10);
    stream.adapter = quick(vec![url(&stream.simulator)]);
    stream.publish(numbered(20..21));
    let given = stream.all().await;
    assert_eq!(texts(&given), ["post 20"]);
    assert_eq!(stream.connections(), 3);
}

#[tokio::test]
async fn cursor_older_than_the_stream_is_reported_once_as_a_gap() {
    let mut stream = Stream::new();
    let start = Timestamp::now().minus(Duration::from_hours(3));
    stream.simulator.set_now(start);
    stream.publish(numbered(0..3));
    let since = PollLimits::default();
    // As if an earlier read had stopped at this position.
    let polled = {
        stream.simulator.set_look_back(Duration::from_hours(36));
        let mut json = stream
            .adapter
            .poll(FEED, None, &since)
            .await
            .unwrap()
            .cursor
            .to_json();
        json["stream"]["at"] = start.minus(Duration::from_secs(1)).micros().into();
        json["stream"]["met"] = true.into();
        stream.cursor = Cursor::from_json(&json);
        stream.poll().await
    };
    assert_eq!((polled.posts.len(), polled.gap), (3, None));
    stream.simulator.cut_streams(None);
    stream.simulator.set_look_back(Duration::from_mins(10));
    stream
        .simulator
        .set_now(start.plus(Duration::from_hours(1)));
    stream.publish(numbered(3..5));
    let mut read = Vec::new();
    while read.len() < 2 {
        if let Ok(polled) = stream.try_poll().await {
            read.extend(polled.posts);
        }
    }
    let mut gaps = Vec::new();
    let mut given = Vec::new();
    stream
        .simulator
        .set_now(start.plus(Duration::from_hours(2)));
    // Close the streams first: an open stream would already have received the events.
    stream.simulator.cut_streams(None);
    stream.publish(numbered(5..8));
    // Reconnecting may take several polls, and a few more follow: the gap is reported once.
    let mut more = 3;
    for _ in 0..100 {
        match stream.try_poll().await {
            Ok(polled) => {
                gaps.extend(polled.gap);
                given.extend(polled.posts);
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        if texts(&given).contains(&"post 7".to_owned()) {
            more -= 1;
        }
        if more == 0 {
            break;
        }
    }
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    let from = gaps[0].from.unwrap();
    assert!(
        gaps[0].to.unwrap().since(from) > Duration::from_mins(30),
        "{gaps:?}"
    );
    assert!(texts(&given).contains(&"post 7".to_owned()));
}

#[tokio::test]
async fn what_is_gone_shows_when_asked_again() {
    let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let fetch: Arc<dyn Fetch> = Arc::new(Direct::new(None).unwrap());
    let api = format!("{}/bluesky", simulator.base_url()).parse().unwrap();
    let adapter = quick(vec![url(&simulator)]).with_app_view(api, fetch, false);
    let published = simulator.publish(numbered(0..60));
    for one in published.iter().step_by(7) {
        simulator.delete(one.id);
    }
    let ids: Vec<String> = published.iter().map(|one| one.post_id.clone()).collect();
    let gone = adapter.recheck(&ids).await.unwrap().gone;
    assert_eq!((gone.len(), adapter.recheck_batch()), (9, 25));
    let strangers: Vec<String> = ids.iter().take(25).map(|id| format!("{id}x")).collect();
    assert!(
        adapter.recheck(&strangers).await.is_err(),
        "none of many found"
    );
    assert!(
        gone.iter()
            .all(|id| published.iter().step_by(7).any(|one| one.post_id == *id))
    );
    assert_eq!(quick(vec![url(&simulator)]).recheck_batch(), 0);
}

#[tokio::test]
async fn refusal_of_a_host_is_classified_by_its_response() {
    let mut stream = Stream::new();
    for (kind, value) in [
        (FaultKind::Status, 500),
        (FaultKind::Status, 401),
        (FaultKind::Status, 404),
        (FaultKind::RetryAfter, 7),
        (FaultKind::Garbage, 0),
        (FaultKind::Huge, 1_000_000),
    ] {
        stream
            .simulator
            .fail(Fault::new(BLUESKY, kind, value).on("subscribe"));
        let error = stream.try_poll().await.unwrap_err();
        println!("{kind:?} {value}: {error}");
        match (kind, value) {
            (FaultKind::Status, 401) => assert!(matches!(error, PollError::Unauthorized { .. })),
            (FaultKind::Status, 404) => assert!(matches!(error, PollError::NotFound(_))),
            (FaultKind::RetryAfter, _) => {
                assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
            }
            _ => assert!(!error.is_permanent()),
        }
    }
    assert!(stream.try_poll().await.is_ok());
}

/// A host that calls `act` for each connection.
async fn host<F, Fut>(act: F) -> Url
where
    F: Fn(WebSocketStream<TcpStream>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(socket) = accept_async(stream).await {
                tokio::spawn(act(socket));
            }
        }
    });
    url.parse().unwrap()
}

fn event(n: i64, time: i64) -> Message {
    written_at("2026-01-01T00:00:00Z", n, time)
}

fn written_at(created: &str, n: i64, time: i64) -> Message {
    let event = serde_json::json!({
        "did": "did:plc:wq4aajammjtxdomz3e23667t", "time_us": time, "kind": "commit",
        "commit": {"operation": "create", "collection": "app.bsky.feed.post", "rkey": format!("k{n}"),
                   "record": {"text": format!("post {n}"), "createdAt": created}},
    });
    Message::text(event.to_string())
}

async fn poll_once(adapter: &Jetstream) -> Result<Polled, PollError> {
    adapter.poll(FEED, None, &PollLimits::default()).await
}

/// Their times do not move the cursor. If the transaction fails then, the stored cursor must not continue the open
/// stream after them.
#[tokio::test]
async fn events_older_than_the_cursor_come_again_after_a_lost_commit() {
    let late = host(async |mut socket: WebSocketStream<TcpStream>| {
        let now = Timestamp::now().micros();
        for (n, time) in [(0, now), (1, now - 60_000_000), (2, now - 60_000_000)] {
            socket.send(event(n, time)).await.unwrap();
        }
        while socket.next().await.is_some() {}
    })
    .await;
    let adapter = quick(vec![late]);
    let limits = PollLimits {
        max_posts: 1,
        ..PollLimits::default()
    };
    let poll = async |cursor: Option<&Cursor>| adapter.poll(FEED, cursor, &limits).await.unwrap();
    let first = poll(None).await;
    let lost = poll(Some(&first.cursor)).await;
    assert_eq!(texts(&lost.posts), ["post 1"]);
    let again = poll(Some(&first.cursor)).await;
    assert_eq!(texts(&again.posts), ["post 1"]);
}

/// A host that sends `events` from the cursor on, and then closes unless it `stays`. Also returns the cursors that
/// were requested.
async fn replaying(events: Vec<(i64, i64)>, stays: bool) -> (Url, Arc<Mutex<Vec<i64>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let cursors = Arc::new(Mutex::new(Vec::new()));
    let requested = Arc::clone(&cursors);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut cursor = 0;
            #[expect(clippy::result_large_err, reason = "the type is tungstenite's")]
            let read_cursor = |request: &Request, response: Response| {
                let query = request.uri().query().unwrap_or_default();
                let value = query
                    .split('&')
                    .find_map(|pair| pair.strip_prefix("cursor="));
                cursor = value.unwrap().parse().unwrap();
                Ok(response)
            };
            let mut socket = accept_hdr_async(stream, read_cursor).await.unwrap();
            requested.lock().unwrap().push(cursor);
            for (n, time) in events.iter().filter(|(_, time)| *time >= cursor) {
                socket.send(event(*n, *time)).await.unwrap();
            }
            if stays {
                tokio::spawn(async move { while socket.next().await.is_some() {} });
            } else {
                let _ = socket.close(None).await;
            }
        }
    });
    (url.parse().unwrap(), cursors)
}

#[tokio::test]
async fn events_that_a_slow_host_had_not_sent_are_read_from_another() {
    const SECOND: i64 = 1_000_000;
    let time = Timestamp::now().micros();
    let (slow, _) = replaying(vec![(1, time)], false).await;
    let on_other = vec![(0, time - 40 * SECOND), (1, time - 50 * SECOND), (2, time)];
    let (other, cursors) = replaying(on_other, true).await;
    let limits = PollLimits {
        since: Some(Timestamp::from_micros(time - SECOND).unwrap()),
        ..PollLimits::default()
    };
    let adapter = quick(vec![slow, other.clone()]);
    let first = adapter.poll(FEED, None, &limits).await.unwrap();
    assert_eq!(texts(&first.posts), ["post 1"]);
    let second = adapter.poll(FEED, Some(&first.cursor), &limits).await;
    let second = second.unwrap();
    // The known post comes again and is dropped.
    assert_eq!(texts(&second.posts), ["post 0", "post 2"]);
    assert_eq!(second.gap, None);

    // The position is now one of the other host, which is resumed a few seconds back.
    let adapter = quick(vec![other]);
    let third = adapter.poll(FEED, Some(&second.cursor), &limits).await;
    assert!(third.unwrap().posts.is_empty());
    let requested = cursors.lock().unwrap().clone();
    assert_eq!(requested, [time - 60 * SECOND, time - 3 * SECOND]);
}

/// One address may lead to several hosts.
#[tokio::test]
async fn host_that_is_less_far_behind_than_the_earlier_one_is_a_gap() {
    const SECOND: i64 = 1_000_000;
    let start = Timestamp::now().micros() - 60 * SECOND;
    for (first, second, is_gap) in [(20, 1, true), (20, 18, false), (1, 20, false)] {
        let connections = AtomicI64::new(0);
        let address = host(move |mut socket: WebSocketStream<TcpStream>| {
            let is_first = connections.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                let (numbers, lag) = if is_first {
                    (0..60, first)
                } else {
                    (60..120, second)
                };
                for n in numbers {
                    let time = start + n;
                    let created = Timestamp::from_micros(time - lag * SECOND).unwrap();
                    let event = written_at(&created.to_string(), n, time);
                    socket.send(event).await.unwrap();
                }
                if is_first {
                    let _ = socket.close(None).await;
                } else {
                    while socket.next().await.is_some() {}
                }
            }
        });
        let adapter = quick(vec![address.await]);
        let (mut cursor, mut gaps, mut posts) = (None, Vec::new(), 0);
        for _ in 0..100 {
            if posts == 120 {
                break;
            }
            let limits = PollLimits::default();
            if let Ok(polled) = adapter.poll(FEED, cursor.as_ref(), &limits).await {
                posts += polled.posts.len();
                gaps.extend(polled.gap);
                cursor = Cursor::from_json(&polled.cursor.to_json());
            }
        }
        assert_eq!(posts, 120);
        let found: Vec<_> = { gaps.iter() }
            .map(|gap| (gap.from.unwrap().micros(), gap.to.unwrap().micros()))
            .collect();
        let expected = is_gap.then_some((start + 59 - first * SECOND, start + 59));
        assert_eq!(found, Vec::from_iter(expected), "{first} s and {second} s");
    }
}

#[tokio::test]
async fn malformed_frames_are_skipped_and_only_malformed_frames_are_an_error() {
    let mixed = host(async |mut socket: WebSocketStream<TcpStream>| {
        let now = Timestamp::now().micros();
        for n in 0..10 {
            for garbage in [
                "",
                "null",
                "{",
                "[[[[",
                r#"{"did":7}"#,
                r#"{"did":"did:plc:abc","time_us":-1,"kind":"commit"}"#,
                r#"{"did":"did:plc:abc","time_us":1,"kind":"commit","commit":{"operation":"create",
                    "collection":"app.bsky.feed.post","rkey":"a","record":{"txt":"a"}}}"#,
            ] {
                socket.send(Message::text(garbage)).await.unwrap();
            }
            socket.send(Message::binary(vec![0_u8, 255])).await.unwrap();
            socket.send(Message::text("[".repeat(5_000))).await.unwrap();
            socket.send(Message::Ping(vec![1].into())).await.unwrap();
            // A time far in the future must not move the cursor there.
            socket
                .send(event(n, if n == 5 { i64::MAX } else { now }))
                .await
                .unwrap();
        }
        while socket.next().await.is_some() {}
    })
    .await;
    let polled = poll_once(&quick(vec![mixed])).await.unwrap();
    assert_eq!(polled.posts.len(), 10);
    // Each kind of garbage once, though it came ten times.
    assert_eq!(polled.skipped.len(), 8, "{:?}", polled.skipped);
    // A poll that returned only garbage has to be stored too.
    let garbage = Polled {
        posts: Vec::new(),
        ..polled.clone()
    };
    assert!(!garbage.is_empty());
    assert!(polled.cursor.high_water().unwrap() <= Timestamp::now());
    let garbage = host(async |mut socket: WebSocketStream<TcpStream>| {
        while socket.send(Message::text("{}")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let error = poll_once(&quick(vec![garbage])).await.unwrap_err();
    assert!(matches!(error, PollError::Malformed(_)), "{error}");
}

#[tokio::test]
async fn endless_message_ends_only_the_connection() {
    let endless = host(async |mut socket: WebSocketStream<TcpStream>| {
        let _ = socket
            .send(Message::text("a".repeat(2 * 1024 * 1024)))
            .await;
        while socket.next().await.is_some() {}
    })
    .await;
    let error = poll_once(&quick(vec![endless])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "unreadable answer: more than 1048576 bytes in a message"
    );
}

#[tokio::test]
async fn silent_host_is_pinged_and_then_replaced() {
    // It reads nothing, so it sends no pong.
    let silent = host(async |socket: WebSocketStream<TcpStream>| {
        let _open = socket;
        std::future::pending::<()>().await;
    })
    .await;
    let lively = host(async |mut socket: WebSocketStream<TcpStream>| {
        socket
            .send(event(1, Timestamp::now().micros()))
            .await
            .unwrap();
        while socket.next().await.is_some() {}
    })
    .await;
    let adapter = quick(vec![silent, lively]);
    let mut cursor = None;
    let mut errors = 0;
    let polled = loop {
        match adapter
            .poll(FEED, cursor.as_ref(), &PollLimits::default())
            .await
        {
            Ok(polled) if polled.posts.is_empty() => cursor = Some(polled.cursor),
            Ok(polled) => break polled,
            Err(error) => {
                assert!(matches!(error, PollError::Unavailable(_)), "{error}");
                errors += 1;
            }
        }
    };
    assert_eq!(
        (texts(&polled.posts), errors),
        (vec!["post 1".to_owned()], 1)
    );
}

#[tokio::test]
async fn a_silent_host_that_answers_pings_is_kept() {
    let quiet =
        host(async |mut socket: WebSocketStream<TcpStream>| while socket.next().await.is_some() {})
            .await;
    let adapter = quick(vec![quiet]);
    let mut cursor = None;
    // Three times the maximum silence.
    for _ in 0..9 {
        let polled = adapter
            .poll(FEED, cursor.as_ref(), &PollLimits::default())
            .await
            .unwrap();
        cursor = Some(polled.cursor);
    }
}

#[tokio::test]
async fn unavailable_host_is_skipped() {
    let stream = Stream::new();
    let away: Url = "ws://127.0.0.1:1".parse().unwrap();
    let adapter = quick(vec![away, url(&stream.simulator)]);
    stream.publish(numbered(0..1));
    let limits = PollLimits {
        since: Some(Timestamp::now().minus(Duration::from_secs(30))),
        ..PollLimits::default()
    };
    let error = adapter.poll(FEED, None, &limits).await.unwrap_err();
    assert!(matches!(error, PollError::Unavailable(_)), "{error}");
    assert_eq!(
        adapter.poll(FEED, None, &limits).await.unwrap().posts.len(),
        1
    );
}
