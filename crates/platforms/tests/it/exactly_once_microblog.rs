//! Every post exactly once, under any schedule: forward with `min_id`, newest first with tokens, and a stream
//! that breaks.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use platform_simulator::{InMemory, NewPost, Simulator};
use platforms::{
    Adapter, Cursor, Fetch, PollError, PollLimits, Polled, Unlimited,
    bluesky::{Jetstream, Waits},
    mastodon::Mastodon,
    x::X,
};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use crate::schedule::{
    Place, Planned, Played, Schedule, Shape, Stage, Staged, cases, play, schedules,
};

/// A simulated platform, with or without a network.
trait Simulated: Send + Sync {
    fn publish(&self, post: NewPost) -> (u64, String);
    fn delete(&self, id: u64) -> bool;
    fn edit(&self, id: u64) -> bool;
    fn set_now(&self, now: Timestamp);
}

macro_rules! simulated {
    ($type:ty) => {
        impl Simulated for $type {
            fn publish(&self, post: NewPost) -> (u64, String) {
                let published = <$type>::publish(self, vec![post]).remove(0);
                (published.id, published.post_id)
            }
            fn delete(&self, id: u64) -> bool {
                <$type>::delete(self, id)
            }
            fn edit(&self, id: u64) -> bool {
                <$type>::edit(self, id, "other text #crm")
            }
            fn set_now(&self, now: Timestamp) {
                <$type>::set_now(self, now);
            }
        }
    };
}
simulated!(InMemory);
simulated!(Simulator);

struct Microblog<S> {
    simulated: Arc<S>,
    platform: &'static str,
    numbers: Mutex<BTreeMap<String, u64>>,
}

impl<S> Microblog<S> {
    fn new(platform: &'static str, simulated: &Arc<S>) -> Self {
        Self {
            simulated: Arc::clone(simulated),
            platform,
            numbers: Mutex::default(),
        }
    }

    fn number(&self, post_id: &str) -> u64 {
        self.numbers.lock().unwrap()[post_id]
    }
}

impl<S: Simulated> Place for Microblog<S> {
    fn publish(&self, post: &Planned) -> String {
        let (number, post_id) = self.simulated.publish(NewPost {
            platform: self.platform.into(),
            title: format!("post {} #crm", post.number),
            author: "ana".into(),
            time: Some(post.time),
            ..NewPost::default()
        });
        self.numbers.lock().unwrap().insert(post_id.clone(), number);
        post_id
    }

    fn delete(&self, post_id: &str) {
        assert!(self.simulated.delete(self.number(post_id)));
    }

    fn edit(&self, post_id: &str) {
        assert!(self.simulated.edit(self.number(post_id)));
    }

    fn set_now(&self, now: Timestamp) {
        self.simulated.set_now(now);
    }
}

fn in_memory(
    schedule: &Schedule,
    platform: &'static str,
    what: &str,
    limits: &PollLimits,
    adapter: impl FnOnce(Arc<dyn Fetch>) -> Box<dyn Adapter>,
) -> Result<Played, TestCaseError> {
    let memory = InMemory::new();
    let stage = Stage::new(Microblog::new(platform, &memory));
    let adapter = adapter(Staged::new(&stage, memory));
    let played = play(schedule, &stage, &*adapter, what, limits)?;
    prop_assert_eq!(played.gaps, 0);
    Ok(played)
}

fn mastodon(schedule: &Schedule, what: &str, limits: &PollLimits) -> Result<Played, TestCaseError> {
    in_memory(schedule, "mastodon", what, limits, |fetch| {
        let url = "http://simulated.example/mastodon".parse().unwrap();
        Box::new(Mastodon::new(url, None, fetch))
    })
}

/// With a last poll long after the others: a post that X indexes late while a backlog is read comes with the next poll
/// after the backlog.
fn x(schedule: &Schedule, limits: &PollLimits) -> Result<Played, TestCaseError> {
    let mut schedule = schedule.clone();
    let last = schedule.polls.last().copied().unwrap_or(0);
    schedule.polls.push(last + 600);
    in_memory(&schedule, "x", "search/#crm", limits, |fetch| {
        let url = "http://simulated.example/x".parse().unwrap();
        Box::new(X::new(url, "good".into(), fetch, Arc::new(Unlimited)))
    })
}

fn few() -> PollLimits {
    PollLimits {
        max_posts: 150,
        ..PollLimits::default()
    }
}

/// Posts come and go while pages are read.
fn shifting() -> Shape {
    Shape {
        during_polls: Duration::from_millis(700),
        ..Shape::default()
    }
}

/// X's index lags less than others, and reading posts again costs money.
fn prompt(shape: Shape) -> Shape {
    Shape {
        most_late: 100,
        ..shape
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn a_hashtag_forward(schedule in schedules(&Shape::default())) {
        mastodon(&schedule, "tag/crm", &PollLimits::default())?;
    }

    #[test]
    fn a_hashtag_forward_in_small_bites(schedule in schedules(&shifting())) {
        mastodon(&schedule, "tag/crm", &few())?;
    }

    #[test]
    fn a_public_timeline_forward(schedule in schedules(&shifting())) {
        mastodon(&schedule, "public", &PollLimits::default())?;
    }

    #[test]
    fn a_search_newest_first(schedule in schedules(&prompt(Shape::default()))) {
        x(&schedule, &PollLimits::default())?;
    }

    #[test]
    fn a_search_newest_first_in_small_bites(schedule in schedules(&prompt(shifting()))) {
        x(&schedule, &few())?;
    }
}

/// An event on a stream before a poll.
#[derive(Debug, Clone, Copy)]
enum Break {
    None,
    /// The host closes the connection.
    Cut,
    /// The host closes each connection after so many events.
    CutAfter(u64),
    /// Another replica takes over the feed.
    Takeover,
    /// The result of the last poll was not stored.
    Lost,
}

/// Consecutive empty polls that mean the end.
const ENOUGH: usize = 3;

/// Reads a stream until nothing comes, and breaks it before polls.
struct Breaking {
    simulator: Arc<Simulator>,
    jetstream: Mutex<Arc<Jetstream>>,
    breaks: Vec<Break>,
    polls: AtomicUsize,
    /// Number of consecutive empty polls.
    stills: AtomicUsize,
}

impl Breaking {
    fn jetstream(simulator: &Simulator) -> Arc<Jetstream> {
        let url = format!("{}/bluesky", simulator.base_url()).replace("http", "ws");
        let hosts = vec![url.parse().unwrap(), url.parse().unwrap()];
        let waits = Waits {
            gather: Duration::from_millis(10),
            idle: Duration::from_millis(100),
            silence: Duration::from_secs(10),
            ..Waits::default()
        };
        Arc::new(Jetstream::new(hosts, None, Arc::new(Unlimited)).with_waits(waits))
    }
}

#[async_trait]
impl Adapter for Breaking {
    fn default_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        // The schedule's times are in the past, so the reading starts there.
        let begun = cursor.is_none().then(|| {
            let at = limits.since.map_or(0, Timestamp::micros);
            let stream = json!({"at": at, "met": false, "seen": []});
            Cursor::from_json(&json!({"version": 1, "stream": stream})).unwrap()
        });
        let is_first = cursor.is_none();
        let cursor = cursor.or(begun.as_ref());
        let poll = self.polls.fetch_add(1, Ordering::Relaxed);
        let breaks = self.breaks.get(poll % self.breaks.len().max(1)).copied();
        let breaks = breaks.filter(|_| !is_first);
        match breaks.unwrap_or(Break::None) {
            Break::None => {}
            Break::Cut => self.simulator.cut_streams(None),
            Break::CutAfter(events) => self.simulator.cut_streams(Some(events)),
            Break::Takeover => *self.jetstream.lock().unwrap() = Self::jetstream(&self.simulator),
            Break::Lost => {
                let jetstream = Arc::clone(&self.jetstream.lock().unwrap());
                let _ = jetstream.poll(what, cursor, limits).await;
            }
        }
        for attempt in 0.. {
            let jetstream = Arc::clone(&self.jetstream.lock().unwrap());
            match jetstream.poll(what, cursor, limits).await {
                Ok(mut polled) => {
                    // A stream always reports more, because the poll itself has waited.
                    assert!(polled.more);
                    // On a busy machine, silence is not the end.
                    let behind = self.simulator.newest_event() > polled.cursor.high_water();
                    // One empty poll is not the end either: events of one microsecond do not say which is the
                    // last.
                    let high_water = cursor.and_then(Cursor::high_water);
                    let is_same = polled.cursor.high_water() == high_water;
                    let still = !behind && is_same && polled.posts.is_empty();
                    let stills = if still {
                        self.stills.fetch_add(1, Ordering::Relaxed) + 1
                    } else {
                        0
                    };
                    polled.more = stills < ENOUGH;
                    if stills == 0 || stills >= ENOUGH {
                        self.stills.store(0, Ordering::Relaxed);
                    }
                    return Ok(polled);
                }
                Err(error) if attempt > 4 => return Err(error),
                // The scanner would retry too; hosts recover after some time.
                Err(_) => self.simulator.cut_streams(None),
            }
        }
        unreachable!("each attempt returns or is followed by another")
    }
}

fn breaks() -> impl Strategy<Value = Vec<Break>> {
    let one = prop_oneof![
        3 => Just(Break::None),
        1 => Just(Break::Cut),
        1 => (1_u64..400).prop_map(Break::CutAfter),
        1 => Just(Break::Takeover),
        1 => Just(Break::Lost),
    ];
    vec(one, 1..12)
}

fn stream(schedule: &Schedule, breaks: &[Break]) -> Result<Played, TestCaseError> {
    let simulator = Arc::new(Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap());
    let stage = Stage::new(Microblog::new("bluesky", &simulator));
    let adapter = Breaking {
        jetstream: Mutex::new(Breaking::jetstream(&simulator)),
        simulator,
        breaks: breaks.to_vec(),
        polls: AtomicUsize::new(0),
        stills: AtomicUsize::new(0),
    };
    let played = play(
        schedule,
        &stage,
        &adapter,
        "jetstream",
        &PollLimits::default(),
    )?;
    prop_assert_eq!(played.gaps, 0);
    Ok(played)
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn a_stream_that_breaks(schedule in schedules(&Shape::default()), breaks in breaks()) {
        stream(&schedule, &breaks)?;
    }
}
