//! Schedules for property tests: events on a platform, polls, and the required result.
//!
//! The property: **a post that was visible for one full interval is returned exactly once**, no matter what
//! else happens: late posts (published with a time in the past), deletions, edits, bursts, polls at any times,
//! posts that come and go while a poll reads pages.
//!
//! How to use it, for a platform `p` that answers without a network:
//!
//! ```ignore
//! impl Place for P { /* publish, delete, edit, set_now */ }
//! proptest! {
//!     #![proptest_config(cases(256))]
//!     #[test]
//!     fn every_post_is_given_once(schedule in schedules(&Shape::default())) {
//!         let stage = Stage::new(P::new());          // itself a `Place`, with the events to come
//!         let fetch = Staged::new(&stage, p_as_fetch); // a `Fetch` that lets time pass with each request
//!         let adapter = Adapter::new(fetch);
//!         play(&schedule, &stage, &adapter, "newest", &PollLimits::default())?;
//!     }
//! }
//! ```
//!
//! [`Shape`] says how hard a schedule may be: a platform that shows no more than 1,000 posts takes smaller
//! bursts. Time is virtual and in the past, because nothing here waits: a schedule of an hour runs in
//! milliseconds. A stream has no requests; it calls [`Stage::pass`] to let time pass.
//!
//! "Visible for one full interval" means: during one whole poll. If pages shift during a poll
//! ([`Shape::during_polls`]): during two consecutive polls.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{Adapter, Cursor, Fetch, FetchError, FetchLimits, Fetched, PollLimits};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use url::Url;

/// A platform whose posts and clock the test controls.
pub(crate) trait Place: Send + Sync {
    /// Publishes a post and returns the `Post.id` that the adapter will give it.
    fn publish(&self, post: &Planned) -> String;
    /// Deletes a post, as its author would.
    fn delete(&self, post_id: &str);
    /// Changes a post's text.
    fn edit(&self, post_id: &str);
    fn set_now(&self, now: Timestamp);
}

/// A post to publish.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    /// Number in this schedule, from 0.
    pub(crate) number: usize,
    /// The post's own time: now, or some time ago for a late post.
    pub(crate) time: Timestamp,
}

/// Bounds of a random schedule.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// Maximum number of posts in the large burst; a schedule has at most one.
    pub(crate) most_burst: usize,
    /// Minimum number of seconds that a burst is spread over.
    pub(crate) least_spread: i64,
    /// Maximum age of a late post, in seconds.
    pub(crate) most_late: i64,
    /// Duration of a request, so that posts come and go while pages are read; zero for none.
    pub(crate) during_polls: Duration,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            most_burst: 1_000,
            least_spread: 0,
            // Together with an interval of 240 s, it is within the overlap of 10 minutes.
            most_late: 300,
            during_polls: Duration::ZERO,
        }
    }
}

/// The events in order of time; the seconds count from the schedule's start.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) events: Vec<(i64, Event)>,
    /// Times of the polls in seconds.
    pub(crate) polls: Vec<i64>,
    during_polls: Duration,
}

#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A post with a time so many seconds ago.
    Post {
        late: i64,
    },
    /// Posts, all published within so many seconds.
    Burst {
        count: usize,
        spread: i64,
    },
    /// Deletes the post so many places before the newest.
    Delete {
        back: usize,
    },
    Edit {
        back: usize,
    },
}

/// The given number of cases, or `PROPTEST_CASES`; failed ones are not saved to a file.
#[expect(
    clippy::disallowed_methods,
    reason = "proptest's, not a setting of ours"
)]
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let asked = asked.and_then(|asked| asked.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 150,
        ..ProptestConfig::default()
    }
}

/// Schedules of 2 to 12 rounds: each has some events, then a poll.
pub(crate) fn schedules(shape: &Shape) -> impl Strategy<Value = Schedule> + use<> {
    let shape = shape.clone();
    let late = shape.most_late;
    let event = prop_oneof![
        6 => Just(Event::Post { late: 0 }),
        2 => (1..=late).prop_map(|late| Event::Post { late }),
        2 => (0_usize..60).prop_map(|back| Event::Delete { back }),
        1 => (0_usize..60).prop_map(|back| Event::Edit { back }),
        2 => (2_usize..30, shape.least_spread..=60)
            .prop_map(|(count, spread)| Event::Burst { count, spread }),
    ];
    let round = (5_i64..=240, vec((0_u32..1_000, event), 0..8));
    let burst = (
        0_usize..12,
        0..=shape.most_burst,
        shape.least_spread..=120,
        prop::bool::weighted(0.25),
    );
    (vec(round, 2..=12), burst).prop_map(move |(rounds, burst)| {
        let mut schedule = Schedule {
            events: Vec::new(),
            polls: Vec::new(),
            during_polls: shape.during_polls,
        };
        let mut start = 0;
        for (at, (length, events)) in rounds.into_iter().enumerate() {
            for (part, event) in events {
                let offset = length * i64::from(part) / 1_000;
                schedule.events.push((start + offset, event));
            }
            let (round, count, spread, wanted) = burst;
            if wanted && round == at && count > 0 {
                schedule
                    .events
                    .push((start, Event::Burst { count, spread }));
            }
            start += length;
            schedule.polls.push(start);
        }
        schedule.events.sort_by_key(|event| event.0);
        schedule
    })
}

/// A place, its future events, and its past ones.
pub(crate) struct Stage<P> {
    pub(crate) place: P,
    state: Mutex<State>,
}

struct State {
    now: Timestamp,
    per_request: Duration,
    coming: VecDeque<(Timestamp, Deed)>,
    /// In the order of publication.
    posts: Vec<Known>,
}

#[derive(Debug, Clone)]
enum Deed {
    Publish { late: i64 },
    Delete { back: usize },
    Edit { back: usize },
}

#[derive(Debug, Clone)]
struct Known {
    id: String,
    from: Timestamp,
    until: Option<Timestamp>,
}

impl<P: Place> Stage<P> {
    pub(crate) fn new(place: P) -> Arc<Self> {
        let state = State {
            now: Timestamp::UNIX_EPOCH,
            per_request: Duration::ZERO,
            coming: VecDeque::new(),
            posts: Vec::new(),
        };
        Arc::new(Self {
            place,
            state: Mutex::new(state),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.state().now
    }

    /// Lets as much time pass as a request takes.
    pub(crate) fn pass(&self) {
        let until = {
            let state = self.state();
            state.now.plus(state.per_request)
        };
        self.advance(until);
    }

    /// Sets the clock, and runs the events until then.
    fn advance(&self, until: Timestamp) {
        let mut state = self.state();
        while state.coming.front().is_some_and(|deed| deed.0 <= until) {
            let (at, deed) = state.coming.pop_front().unwrap();
            state.now = state.now.max(at);
            self.place.set_now(state.now);
            self.act(&mut state, &deed);
        }
        state.now = state.now.max(until);
        self.place.set_now(state.now);
    }

    fn act(&self, state: &mut State, deed: &Deed) {
        let back = match deed {
            Deed::Publish { late } => {
                let late = Duration::from_secs(late.unsigned_abs());
                let planned = Planned {
                    number: state.posts.len(),
                    time: state.now.minus(late),
                };
                let id = self.place.publish(&planned);
                let from = state.now;
                let until = None;
                state.posts.push(Known { id, from, until });
                return;
            }
            Deed::Delete { back } | Deed::Edit { back } => *back,
        };
        let now = state.now;
        let standing = state.posts.iter_mut().rev().filter(|p| p.until.is_none());
        let Some(post) = standing.into_iter().nth(back) else {
            return;
        };
        if matches!(deed, Deed::Edit { .. }) {
            self.place.edit(&post.id);
        } else {
            self.place.delete(&post.id);
            post.until = Some(now);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// Fetches from a place, and lets time pass with each request.
pub(crate) struct Staged<P> {
    stage: Arc<Stage<P>>,
    fetch: Arc<dyn Fetch>,
}

impl<P: Place + 'static> Staged<P> {
    #[expect(clippy::new_ret_no_self, reason = "what is wanted of it is a fetch")]
    pub(crate) fn new(stage: &Arc<Stage<P>>, fetch: Arc<dyn Fetch>) -> Arc<dyn Fetch> {
        Arc::new(Self {
            stage: Arc::clone(stage),
            fetch,
        })
    }
}

#[async_trait]
impl<P: Place> Fetch for Staged<P> {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let answer = self.fetch.get(url, headers, limits).await;
        self.stage.pass();
        answer
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let answer = self.fetch.post_form(url, headers, form, limits).await;
        self.stage.pass();
        answer
    }
}

/// Result of a schedule.
#[derive(Debug, Default)]
pub(crate) struct Played {
    pub(crate) posts: usize,
    pub(crate) given: usize,
    pub(crate) polls: usize,
    pub(crate) gaps: usize,
}

/// Plays a schedule on a stage, polls as planned, and checks the property.
pub(crate) fn play<P: Place>(
    schedule: &Schedule,
    stage: &Stage<P>,
    adapter: &dyn Adapter,
    what: &str,
    limits: &PollLimits,
) -> Result<Played, TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(run(schedule, stage, adapter, what, limits))
}

async fn run<P: Place>(
    schedule: &Schedule,
    stage: &Stage<P>,
    adapter: &dyn Adapter,
    what: &str,
    limits: &PollLimits,
) -> Result<Played, TestCaseError> {
    let start = prepare(schedule, stage);
    let limits = PollLimits {
        // All posts of the schedule, late ones too, count as new at the first poll.
        since: limits.since.or(Some(start.minus(Duration::from_hours(1)))),
        ..limits.clone()
    };
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    let mut polls = Vec::new();
    let mut played = Played::default();
    let mut cursor: Option<Cursor> = None;
    for second in &schedule.polls {
        stage.advance(after(start, *second));
        let from = stage.now();
        loop {
            let polled = adapter.poll(what, cursor.as_ref(), &limits).await;
            let polled = polled.map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
            played.polls += 1;
            prop_assert!(played.polls < 2_000, "polls that never end");
            prop_assert!(polled.posts.is_sorted_by_key(|post| post.time));
            for post in &polled.posts {
                *given.entry(post.id.clone()).or_default() += 1;
            }
            played.gaps += usize::from(polled.gap.is_some());
            // Every cursor goes through its JSON, as it does in the database.
            cursor = Cursor::from_json(&polled.cursor.to_json());
            prop_assert!(cursor.as_ref() == Some(&polled.cursor));
            if !polled.more {
                break;
            }
        }
        polls.push((from, stage.now()));
    }
    let posts = stage.state().posts.clone();
    let span = if schedule.during_polls.is_zero() {
        1
    } else {
        2
    };
    for post in &posts {
        let times = given.remove(&post.id).unwrap_or(0);
        played.posts += 1;
        played.given += times;
        prop_assert!(times <= 1, "{post:?} was given {times} times");
        let stood = |polls: &[(Timestamp, Timestamp)]| {
            let (from, until) = (polls[0].0, polls[polls.len() - 1].1);
            post.from <= from && post.until.is_none_or(|gone| gone > until)
        };
        let visible = polls.windows(span).any(stood);
        prop_assert!(
            times == 1 || !visible,
            "{post:?} was missed; polls {polls:?}"
        );
    }
    prop_assert!(given.is_empty(), "given, but never published: {given:?}");
    Ok(played)
}

/// Converts the schedule to events at times, all of them in the past; returns its start.
fn prepare<P: Place>(schedule: &Schedule, stage: &Stage<P>) -> Timestamp {
    let length = schedule.polls.last().copied().unwrap_or(0);
    // A poll may take as long as its requests do.
    let length = Duration::from_secs(length.unsigned_abs()) + Duration::from_hours(2);
    let start = Timestamp::now().minus(length);
    let mut coming: Vec<(Timestamp, Deed)> = Vec::new();
    for (second, event) in &schedule.events {
        let at = after(start, *second);
        match event {
            Event::Post { late } => coming.push((at, Deed::Publish { late: *late })),
            Event::Delete { back } => coming.push((at, Deed::Delete { back: *back })),
            Event::Edit { back } => coming.push((at, Deed::Edit { back: *back })),
            Event::Burst { count, spread } => coming.extend((0..*count).map(|number| {
                let micros = spread * 1_000_000 * i64::try_from(number).unwrap();
                let offset = micros.unsigned_abs() / *count as u64;
                let at = at.plus(Duration::from_micros(offset));
                (at, Deed::Publish { late: 0 })
            })),
        }
    }
    coming.sort_by_key(|deed| deed.0);
    let mut state = stage.state();
    state.now = start;
    state.per_request = schedule.during_polls;
    state.coming = coming.into();
    stage.place.set_now(start);
    drop(state);
    start
}

fn after(start: Timestamp, seconds: i64) -> Timestamp {
    start.plus(Duration::from_secs(seconds.unsigned_abs()))
}
