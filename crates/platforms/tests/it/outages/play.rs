//! The course of one case: a feed is read, posts pile up while requests fail, and the feed is read to its end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::Timestamp;
use platform_simulator::{InMemory, NewPost, Published, Simulator};
use platforms::{Adapter, Cursor, Direct, Fetch, PollLimits, Polled};
use url::Url;

use super::{
    Kind,
    case::{Case, KNOWN, Pace},
    failing::{Failing, Numbers},
};

/// A simulated platform, with or without a network.
enum World {
    Memory(Arc<InMemory>),
    Server(Simulator),
}

impl World {
    fn start(needs_server: bool) -> Self {
        if needs_server {
            Self::Server(Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap())
        } else {
            Self::Memory(InMemory::new())
        }
    }

    fn fetch(&self) -> Arc<dyn Fetch> {
        match self {
            Self::Memory(memory) => Arc::clone(memory) as _,
            Self::Server(_) => Arc::new(Direct::new(None).unwrap()),
        }
    }

    fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        match self {
            Self::Memory(memory) => memory.publish(posts),
            Self::Server(simulator) => simulator.publish(posts),
        }
    }

    fn delete(&self, id: u64) -> bool {
        match self {
            Self::Memory(memory) => memory.delete(id),
            Self::Server(simulator) => simulator.delete(id),
        }
    }

    fn url(&self, platform: &str) -> Url {
        let base = match self {
            Self::Memory(_) => "http://simulated.example".to_owned(),
            Self::Server(simulator) => simulator.base_url(),
        };
        format!("{base}/{platform}").parse().unwrap()
    }
}

/// Sums over the cases of one kind.
#[derive(Debug, Default)]
pub(super) struct Total {
    cases: u64,
    posts: usize,
    polls: u64,
    failed: u64,
}

impl Total {
    pub(super) fn add(&mut self, other: &Self) {
        self.cases += other.cases;
        self.posts += other.posts;
        self.polls += other.polls;
        self.failed += other.failed;
    }
}

pub(super) async fn play(kind: &Kind, seed: u64) -> Total {
    let numbers = Numbers::new(seed);
    let case = Case::draw(
        kind.platform,
        seed,
        kind.most_posts,
        kind.most_span,
        &numbers,
    );
    let world = World::start(kind.needs_server);
    let fetch = Arc::new(Failing::new(world.fetch(), kind.page, seed + 1_000));
    let adapter = (kind.adapter)(world.url(kind.platform), Arc::clone(&fetch) as _);
    let posts = Posts::begin(kind, &case, world);
    let limits = PollLimits {
        since: Some(posts.start.minus(Duration::from_hours(1))),
        ..PollLimits::default()
    };
    let mut course = Course {
        kind,
        case: &case,
        numbers,
        fetch,
        posts,
        given: BTreeMap::new(),
        stage: Stage::First,
        silent_polls: 0,
        total: Total {
            cases: 1,
            ..Total::default()
        },
    };
    course.run(&*adapter, limits).await;
    course.check()
}

/// The published posts.
struct Posts<'a> {
    kind: &'a Kind,
    world: World,
    times: &'a [u64],
    start: Timestamp,
    parent: Option<u64>,
    /// In the order of publication; false if the post was deleted.
    published: Vec<(Published, bool)>,
}

impl<'a> Posts<'a> {
    fn begin(kind: &'a Kind, case: &'a Case, world: World) -> Self {
        let start = Timestamp::now().minus(case.span() + Duration::from_mins(1));
        let parent = kind.is_comment.then(|| {
            let story = NewPost {
                title: "what it is about".into(),
                time: Some(start.minus(Duration::from_hours(48))),
                ..like(kind)
            };
            world.publish(vec![story])[0].id
        });
        Self {
            kind,
            world,
            times: &case.times,
            start,
            parent,
            published: Vec::new(),
        }
    }

    fn publish(&mut self, count: u64) {
        let first = self.published.len();
        let count = usize::try_from(count).unwrap();
        let posts = (first..first + count).map(|number| NewPost {
            title: format!("post {number} #crm"),
            text: Some("some text #crm".into()),
            time: Some(self.start.plus(Duration::from_secs(self.times[number]))),
            parent: self.parent,
            ..like(self.kind)
        });
        let new = self.world.publish(posts.collect());
        self.published
            .extend(new.into_iter().map(|one| (one, true)));
    }

    fn delete_one_of_the_last(&mut self, back: usize) {
        let at = self.published.len() - 1 - back;
        let post = &mut self.published[at];
        post.1 = !self.world.delete(post.0.id) && post.1;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The feed is read for the first time.
    First,
    /// The first backlog is read.
    Behind,
    /// The second one too.
    FurtherBehind,
    /// Everything was read, and nothing fails any more; so many polls ago.
    Quiet(u32),
}

struct Course<'a> {
    kind: &'a Kind,
    case: &'a Case,
    numbers: Numbers,
    fetch: Arc<Failing>,
    posts: Posts<'a>,
    given: BTreeMap<String, usize>,
    stage: Stage,
    /// No request succeeds in so many more polls.
    silent_polls: u64,
    total: Total,
}

impl Course<'_> {
    async fn run(&mut self, adapter: &dyn Adapter, mut limits: PollLimits) {
        let mut cursor: Option<Cursor> = None;
        self.posts.publish(KNOWN);
        while self.stage != Stage::Quiet(3) {
            self.total.polls += 1;
            assert!(self.total.polls < 30_000, "{}: no end", self.case);
            self.draw_limits(&mut limits);
            let percent = self.draw_percent();
            self.fetch.set_percent(percent);
            self.fetch.begin_poll();
            let polled = adapter.poll(self.kind.what, cursor.as_ref(), &limits).await;
            let pages = self.fetch.pages_read();
            let polled = match polled {
                Ok(polled) => polled,
                Err(error) => {
                    self.total.failed += 1;
                    assert!(percent > 0, "{}: {error:?}", self.case);
                    // A page whose posts need another request, such as for their category, is read again.
                    assert!(
                        pages == 0 || self.fetch.other_failed(),
                        "{}: a page was read for nothing",
                        self.case
                    );
                    continue;
                }
            };
            self.take(&polled, cursor.as_ref(), &limits, pages);
            // Every cursor goes through its JSON, as it does in the database.
            cursor = Cursor::from_json(&polled.cursor.to_json());
            assert_eq!(cursor.as_ref(), Some(&polled.cursor), "{}", self.case);
            self.go_on(polled.more);
        }
    }

    fn draw_limits(&self, limits: &mut PollLimits) {
        let is_mixed = self.case.pace == Pace::Mixed;
        let is_slow = self.case.pace == Pace::Slow || (is_mixed && self.numbers.below(2) == 0);
        limits.max_time = if is_slow {
            Duration::ZERO
        } else {
            Duration::from_secs(100)
        };
        if is_mixed {
            limits.max_pages = self.numbers.one_of([1, 2, 3, 400]);
            limits.max_posts = self.numbers.one_of([150, 2_000]);
        }
    }

    fn draw_percent(&mut self) -> u64 {
        match self.stage {
            Stage::Quiet(_) => return 0,
            Stage::First if !self.case.fails_at_first => return 0,
            Stage::First | Stage::Behind | Stage::FurtherBehind => {}
        }
        if self.silent_polls > 0 {
            self.silent_polls -= 1;
            return 100;
        }
        if self.case.has_silences && self.numbers.below(20) == 0 {
            self.silent_polls = self.numbers.below(12);
            return 100;
        }
        self.case.percent
    }

    /// Counts the posts, and checks that the poll made progress.
    fn take(&mut self, polled: &Polled, before: Option<&Cursor>, limits: &PollLimits, pages: u64) {
        let case = self.case;
        assert_eq!(polled.gap, None, "{case}");
        assert!(polled.posts.len() <= limits.max_posts + 200, "{case}");
        for post in &polled.posts {
            *self.given.entry(post.id.clone()).or_default() += 1;
        }
        let position = |cursor: &Cursor| {
            let json = cursor.to_json();
            (json["unread"]["before"].clone(), json["pending"].clone())
        };
        let moved = !polled.more
            || !polled.posts.is_empty()
            || before.is_none_or(|before| position(before) != position(&polled.cursor));
        // Numbered pages shift, so a poll that continues reads the page before its position again.
        let is_continued = before.is_some_and(|before| !before.to_json()["unread"].is_null());
        let overlap = u64::from(is_continued && self.kind.is_numbered);
        let polls = self.total.polls;
        assert!(
            moved || pages <= overlap,
            "{case}: poll {polls} read {pages} pages and got no further"
        );
        // A poll whose requests failed may change nothing if it asks for a pause.
        let changed = before != Some(&polled.cursor);
        assert!(
            !polled.more || changed || polled.next_hint.is_some(),
            "{case}: poll {polls} changed nothing, and asks for another at once"
        );
    }

    /// Publishes and deletes posts after a poll.
    fn go_on(&mut self, more: bool) {
        let [first, second] = self.case.backlogs;
        match self.stage {
            Stage::First if more => {}
            Stage::First => {
                self.posts.publish(first);
                self.stage = Stage::Behind;
            }
            Stage::Behind if !more || self.numbers.below(8) == 0 => {
                self.posts.publish(second);
                self.stage = Stage::FurtherBehind;
            }
            Stage::Behind | Stage::FurtherBehind if more => self.change_little(),
            Stage::Behind | Stage::FurtherBehind => self.stage = Stage::Quiet(0),
            Stage::Quiet(polls) => self.stage = Stage::Quiet(polls + u32::from(!more)),
        }
    }

    fn change_little(&mut self) {
        let left = self.posts.times.len() - self.posts.published.len();
        let coming = if self.stage == Stage::Behind {
            self.case.backlogs[1]
        } else {
            0
        };
        let left = left.saturating_sub(usize::try_from(coming).unwrap());
        if left >= 3 && self.numbers.below(10) == 0 {
            self.posts.publish(1 + self.numbers.below(3));
            let back = usize::try_from(self.numbers.below(60)).unwrap();
            self.posts.delete_one_of_the_last(back);
        }
    }

    fn check(mut self) -> Total {
        let case = self.case;
        let Total { polls, failed, .. } = self.total;
        for (post, stands) in &self.posts.published {
            let times = self.given.remove(&post.post_id).unwrap_or(0);
            assert!(times <= 1, "{case}: {post:?} was given {times} times");
            assert!(
                times == 1 || !stands,
                "{case}: {post:?} was missed in {polls} polls, {failed} failed"
            );
        }
        let given = &self.given;
        assert!(
            given.is_empty(),
            "{case}: given, but never published: {given:?}"
        );
        self.total.posts = self.posts.published.len();
        self.total
    }
}

fn like(kind: &Kind) -> NewPost {
    NewPost {
        platform: kind.platform.into(),
        community: kind.community.map(str::to_owned),
        author: "ana".into(),
        ..NewPost::default()
    }
}
