//! Backlogs after outages: for any share of failed requests and any speed of polls, each post is returned once,
//! and each poll that reads a page makes progress.
//!
//! A case follows from its seed: the number of posts, the time between them, the share of requests that fail,
//! and whether polls are so slow that each reads one page. `PROPTEST_CASES` is the number of seeds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{
    Adapter, Cursor, Direct, Fetch, FetchError, FetchLimits, Fetched, PollLimits, Unlimited,
    discourse::Discourse,
    facebook::Facebook,
    hackernews::HackerNews,
    lemmy::Lemmy,
    linkedin::LinkedIn,
    lobsters::Lobsters,
    mastodon::Mastodon,
    reddit::Reddit,
    simulator::{InMemory, NewPost, Published, Simulator, reddit},
    x::X,
};
use url::Url;

use crate::schedule::cases;

/// Pseudo-random numbers from a seed (splitmix64).
struct Numbers(AtomicU64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0xA076_1D64_78BD_642F)))
    }

    fn below(&self, end: u64) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

/// Fails a share of the requests.
struct Failing {
    fetch: Arc<dyn Fetch>,
    numbers: Numbers,
    percent: AtomicU64,
}

impl Failing {
    fn fails(&self, url: &Url) -> Option<Result<Fetched, FetchError>> {
        if self.numbers.below(100) >= self.percent.load(Ordering::Relaxed) {
            return None;
        }
        let answer = |status| Fetched {
            status,
            headers: Vec::new(),
            body: b"<html>something went wrong</html>".to_vec(),
            final_url: url.clone(),
        };
        Some(match self.numbers.below(4) {
            0 => Err(FetchError::Timeout),
            1 => Ok(answer(500)),
            2 => Ok(answer(503)),
            _ => Ok(answer(200)),
        })
    }
}

#[async_trait]
impl Fetch for Failing {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        match self.fails(url) {
            Some(failure) => failure,
            None => self.fetch.get(url, headers, limits).await,
        }
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.fetch.post_form(url, headers, form, limits).await
    }
}

/// A simulated platform, with or without a network.
enum World {
    Memory(Arc<InMemory>),
    Server(Simulator),
}

impl World {
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

/// One feed of one platform.
struct Kind {
    platform: &'static str,
    what: &'static str,
    /// Limits of the backlog: how far back the platform lists posts, and for how long.
    most_posts: u64,
    most_span: Duration,
    is_comment: bool,
    needs_server: bool,
    adapter: fn(Url, Arc<dyn Fetch>) -> Box<dyn Adapter>,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            platform: "",
            what: "newest",
            most_posts: 5_000,
            most_span: Duration::from_hours(24 * 365),
            is_comment: false,
            needs_server: false,
            adapter: |_, _| unreachable!("each kind has its own"),
        }
    }
}

/// Number of posts before the backlog.
const KNOWN: u64 = 120;

fn play(kind: &Kind) {
    let seeds = u64::from(cases(5).cases);
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(play_one(kind, seed));
    }
}

async fn play_one(kind: &Kind, seed: u64) {
    let numbers = Numbers::new(seed);
    let span = 100 + numbers.below(kind.most_posts - 99);
    // Long backlogs are rare, because they take long.
    let count = if seed % 5 == 4 { span } else { 100 + span / 10 };
    let longest = kind.most_span.as_secs() / (count + KNOWN + 100);
    let between = [1, 7, 60, 3_600][usize::try_from(numbers.below(4)).unwrap()].min(longest);
    let percent = 5 + numbers.below(36);
    let is_slow = numbers.below(3) == 0;
    let case = format!(
        "{} seed {seed}: {count} posts each {between} s, {percent} % fail, slow: {is_slow}",
        kind.platform
    );

    let world = if kind.needs_server {
        World::Server(Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap())
    } else {
        World::Memory(InMemory::new())
    };
    let inner: Arc<dyn Fetch> = match &world {
        World::Memory(memory) => Arc::clone(memory) as _,
        World::Server(_) => Arc::new(Direct::new(None).unwrap()),
    };
    let fetch = Arc::new(Failing {
        fetch: inner,
        numbers: Numbers::new(seed + 1_000),
        percent: AtomicU64::new(0),
    });
    let adapter = (kind.adapter)(world.url(kind.platform), Arc::clone(&fetch) as _);

    let start = Timestamp::now().minus(Duration::from_secs((count + KNOWN + 100) * between));
    let story = kind.is_comment.then(|| {
        let story = NewPost {
            title: "what it is about".into(),
            time: Some(start.minus(Duration::from_hours(48))),
            ..like(kind)
        };
        world.publish(vec![story])[0].id
    });
    let next = AtomicU64::new(0);
    // In the order of publication.
    let published: Mutex<Vec<(Published, bool)>> = Mutex::default();
    let publish = |count: u64| {
        let posts = (0..count).map(|_| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            NewPost {
                title: format!("post {number} #crm"),
                text: Some("some text #crm".into()),
                time: Some(start.plus(Duration::from_secs(number * between))),
                parent: story,
                ..like(kind)
            }
        });
        let new = world.publish(posts.collect());
        published
            .lock()
            .unwrap()
            .extend(new.into_iter().map(|one| (one, true)));
    };

    let limits = PollLimits {
        since: Some(start.minus(Duration::from_hours(1))),
        max_time: if is_slow {
            Duration::ZERO
        } else {
            Duration::from_secs(100)
        },
        ..PollLimits::default()
    };
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    let mut cursor: Option<Cursor> = None;
    publish(KNOWN);
    let (mut polls, mut failed, mut quiet) = (0_u64, 0, 0);
    let mut is_behind = false;
    while quiet < 3 {
        polls += 1;
        assert!(polls < 30_000, "{case}: no end");
        let polled = match adapter.poll(kind.what, cursor.as_ref(), &limits).await {
            Ok(polled) => polled,
            Err(error) => {
                failed += 1;
                assert!(is_behind, "{case}: {error:?}");
                continue;
            }
        };
        assert_eq!(polled.gap, None, "{case}");
        assert!(polled.posts.len() <= limits.max_posts + 200, "{case}");
        for post in &polled.posts {
            *given.entry(post.id.clone()).or_default() += 1;
        }
        // Every cursor goes through its JSON, as it does in the database.
        let read = Cursor::from_json(&polled.cursor.to_json());
        assert_eq!(read.as_ref(), Some(&polled.cursor), "{case}");
        let moved = read != cursor;
        assert!(moved || !polled.more, "{case}: poll {polls} got no further");
        cursor = read;
        if polled.more {
            if is_behind
                && quiet == 0
                && numbers.below(10) == 0
                && next.load(Ordering::Relaxed) < count + KNOWN + 90
            {
                publish(1 + numbers.below(3));
                let mut published = published.lock().unwrap();
                let back = usize::try_from(numbers.below(60)).unwrap();
                let at = published.len() - 1 - back;
                published[at].1 = !world.delete(published[at].0.id) && published[at].1;
            }
        } else if is_behind {
            fetch.percent.store(0, Ordering::Relaxed);
            quiet += 1;
        } else {
            is_behind = true;
            publish(count);
            fetch.percent.store(percent, Ordering::Relaxed);
        }
    }
    for (post, stands) in published.lock().unwrap().iter() {
        let times = given.remove(&post.post_id).unwrap_or(0);
        assert!(times <= 1, "{case}: {post:?} was given {times} times");
        assert!(
            times == 1 || !stands,
            "{case}: {post:?} was missed in {polls} polls, {failed} failed"
        );
    }
    assert!(
        given.is_empty(),
        "{case}: given, but never published: {given:?}"
    );
}

fn like(kind: &Kind) -> NewPost {
    let community = match kind.platform {
        "reddit" => Some("saas"),
        "linkedin" | "facebook" => Some("1234"),
        _ => None,
    };
    NewPost {
        platform: kind.platform.into(),
        community: community.map(str::to_owned),
        author: "ana".into(),
        ..NewPost::default()
    }
}

#[test]
fn lemmy_posts_come_through_an_outage() {
    play(&Kind {
        platform: "lemmy",
        adapter: |url, fetch| Box::new(Lemmy::new(url, fetch)),
        ..Kind::default()
    });
}

#[test]
fn lobsters_comes_through_an_outage() {
    play(&Kind {
        platform: "lobsters",
        adapter: |url, fetch| Box::new(Lobsters::new("lobsters".into(), url, fetch)),
        ..Kind::default()
    });
}

#[test]
fn lemmy_comments_come_through_an_outage() {
    play(&Kind {
        platform: "lemmy",
        what: "comments",
        is_comment: true,
        adapter: |url, fetch| Box::new(Lemmy::new(url, fetch)),
        ..Kind::default()
    });
}

#[test]
fn discourse_topics_come_through_an_outage() {
    play(&Kind {
        platform: "discourse",
        what: "latest",
        most_posts: 1_500,
        adapter: |url, fetch| Box::new(Discourse::new("discourse".into(), url, None, fetch)),
        ..Kind::default()
    });
}

#[test]
fn discourse_replies_come_through_an_outage() {
    play(&Kind {
        platform: "discourse",
        what: "posts",
        is_comment: true,
        adapter: |url, fetch| Box::new(Discourse::new("discourse".into(), url, None, fetch)),
        ..Kind::default()
    });
}

#[test]
fn reddit_posts_come_through_an_outage() {
    play(&Kind {
        platform: "reddit",
        what: "r/saas",
        // A listing reaches back over 1,000.
        most_posts: 850,
        adapter: |url, fetch| {
            let (id, secret) = (reddit::CLIENT_ID.to_owned(), reddit::CLIENT_SECRET);
            let secret = secret.to_owned().into();
            Box::new(Reddit::new("reddit".into(), url, id, secret, fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn hacker_news_comes_through_an_outage() {
    play(&Kind {
        platform: "hackernews",
        adapter: |url, fetch| {
            let search = format!("{url}/api/v1").parse().unwrap();
            Box::new(HackerNews::new("hackernews".into(), search, None, fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn facebook_comes_through_an_outage() {
    play(&Kind {
        platform: "facebook",
        what: "page/1234",
        needs_server: true,
        adapter: |url, fetch| {
            let (token, version) = ("good".to_owned().into(), Some("v25.0".to_owned()));
            Box::new(Facebook::new("facebook".into(), url, token, version, fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn linkedin_comes_through_an_outage() {
    play(&Kind {
        platform: "linkedin",
        what: "organization/1234",
        needs_server: true,
        adapter: |url, fetch| {
            let token = "good".to_owned().into();
            Box::new(LinkedIn::new(url, token, "202610".into(), fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn mastodon_comes_through_an_outage() {
    play(&Kind {
        platform: "mastodon",
        what: "tag/crm",
        adapter: |url, fetch| Box::new(Mastodon::new(url, None, fetch)),
        ..Kind::default()
    });
}

#[test]
fn x_comes_through_an_outage() {
    play(&Kind {
        platform: "x",
        what: "search/#crm",
        most_span: Duration::from_hours(24 * 6),
        adapter: |url, fetch| Box::new(X::new(url, "good".into(), fetch, Arc::new(Unlimited))),
        ..Kind::default()
    });
}
