//! Finds communities to watch when a Manager's pages name none.
//!
//! Platforms with a search API are searched for the first names and terms of the instructions. The results are added to
//! the newest posts of every platform, except communities that these already include. The ranking counts how many of
//! the queries found a community, its rank in the results, and whether its name or description contains the query.
//!
//! Discovery never fails a compile, and takes at most [`PATIENCE`]. A platform that does not answer is left out for a
//! minute, and the communities that it returned before stay. They also stay if the platform refuses a query, or if the
//! deadline ends the searches. Other Managers' searches then continue, because they may be of other accounts. A process
//! sends a platform at most [`SEARCHES_PER_MINUTE`] searches a minute, for all compiles together; an account may use at
//! most as many of them as it leaves for others. Searches use the budget of the scanners, and leave half of it unused
//! ([`budget`]). A platform that cannot be searched, for example without credentials, is left out.

mod budget;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain::{FeedName, Instructions, instructions::NameKind, web_url};
use platforms::{
    AddressKey, Community, Fetch, FetchError, FetchLimits, Fetched, Platform, Platforms, PollError,
    Settings, Source,
};
use runtime::config::PlatformConfig;
use store::Pool;
use url::Url;

/// Deadline for all searches of a Manager.
const PATIENCE: Duration = Duration::from_secs(5);
const PER_SEARCH: Duration = Duration::from_secs(3);
const LEAVE_OUT: Duration = Duration::from_mins(1);
const SEARCHES_PER_MINUTE: usize = 12;
const MAX_NAMES: usize = 2;
const MAX_QUERIES: usize = 4;
/// Maximum number of communities per search.
const LIMIT: usize = 10;
/// Maximum number of communities per platform.
const MAX_PER_PLATFORM: usize = 5;

/// The platforms that can be searched.
pub(crate) struct Discovery {
    platforms: Vec<Platform>,
    recent: Mutex<HashMap<String, RecentSearches>>,
}

/// Recent searches of a platform.
#[derive(Default)]
struct RecentSearches {
    /// Times, and the accounts that they were for.
    times: VecDeque<(Instant, String)>,
    failed: Option<Instant>,
}

/// Result of the searches of one platform.
enum Searched<'a> {
    Found(Vec<(&'a str, Vec<Community>)>),
    /// Some queries have no answer, because there are too many searches now, the platform refused a query, or the
    /// deadline ended them. The next search may succeed.
    Incomplete,
    /// The platform does not answer.
    Failed,
}

/// Result of a discovery.
#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) feeds: Vec<FeedName>,
    /// Platforms without an answer this time.
    pub(crate) silent: Vec<String>,
}

impl Discovery {
    /// Uses the platforms that can be searched; counts requests in the database of `pool`.
    pub(crate) fn new(configured: &[PlatformConfig], pool: &Pool) -> Self {
        // Feeds that customers name have no search.
        let nothing: Arc<dyn Fetch> = Arc::new(Nothing);
        let address_key = AddressKey::random();
        let mut platforms = Vec::new();
        for settings in configured.iter().map(Settings::from) {
            let budget = Arc::new(budget::Shared::new(pool.clone(), &settings));
            let given = |_: &Settings| Arc::clone(&budget) as Arc<dyn platforms::Budget>;
            let settings_of_one = std::slice::from_ref(&settings);
            match Platforms::with_budgets(settings_of_one, &nothing, &address_key, given) {
                Ok(built) => platforms.extend(built.iter().cloned()),
                Err(error) => tracing::info!(
                    platform = settings.name,
                    "not searched for communities: {:#}",
                    anyhow::Error::from(error)
                ),
            }
        }
        Self::of(platforms)
    }

    fn of(platforms: Vec<Platform>) -> Self {
        Self {
            platforms,
            recent: Mutex::default(),
        }
    }

    /// Finds communities of the source's platforms for the instructions of an account.
    pub(crate) async fn find(
        &self,
        account: &str,
        source: Source,
        instructions: &Instructions,
    ) -> Discovered {
        let queries = queries(instructions);
        let own = self
            .platforms
            .iter()
            .filter(|platform| platform.source == source);
        let end = tokio::time::Instant::now() + PATIENCE;
        let searches = own.map(|platform| {
            let queries = &queries;
            async move {
                let searched =
                    tokio::time::timeout_at(end, self.search(account, platform, queries));
                (platform, searched.await.unwrap_or(Searched::Incomplete))
            }
        });
        let mut discovered = Discovered::default();
        for (platform, found) in futures::future::join_all(searches).await {
            match found {
                Searched::Found(found) => discovered.feeds.extend(ranked(platform, found)),
                Searched::Incomplete => discovered.silent.push(platform.name.clone()),
                Searched::Failed => {
                    self.leave_out(&platform.name);
                    discovered.silent.push(platform.name.clone());
                }
            }
        }
        discovered
    }

    /// Returns the results of each query.
    async fn search<'a>(
        &self,
        account: &str,
        platform: &Platform,
        queries: &'a [String],
    ) -> Searched<'a> {
        let mut found = Vec::with_capacity(queries.len());
        for query in queries {
            if !self.may_ask(account, &platform.name) {
                tracing::debug!(
                    platform = platform.name,
                    "too many searches for communities"
                );
                return Searched::Incomplete;
            }
            let search = platform.adapter.communities(query, LIMIT);
            match tokio::time::timeout(PER_SEARCH, search).await {
                Ok(Ok(communities)) => found.push((query.as_str(), communities)),
                Ok(Err(error)) => {
                    let searched = if is_of_query(&error) {
                        Searched::Incomplete
                    } else {
                        Searched::Failed
                    };
                    tracing::info!(
                        platform = platform.name,
                        "no search for communities: {:#}",
                        anyhow::Error::from(error)
                    );
                    return searched;
                }
                Err(_elapsed) => return Searched::Failed,
            }
        }
        Searched::Found(found)
    }

    fn may_ask(&self, account: &str, platform: &str) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let RecentSearches { times, failed } = recent.entry(platform.to_owned()).or_default();
        while times
            .front()
            .is_some_and(|(at, _)| at.elapsed() >= Duration::from_mins(1))
        {
            times.pop_front();
        }
        let left_out = failed.is_some_and(|at| at.elapsed() < LEAVE_OUT);
        let own = times.iter().filter(|(_, of)| of == account).count();
        let may = own < SEARCHES_PER_MINUTE.saturating_sub(times.len()) && !left_out;
        if may {
            times.push_back((Instant::now(), account.to_owned()));
        }
        may
    }

    /// Leaves a platform out for a while; does not extend a pause.
    fn leave_out(&self, platform: &str) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = &mut recent.entry(platform.to_owned()).or_default().failed;
        if failed.is_none_or(|at| at.elapsed() >= LEAVE_OUT) {
            *failed = Some(Instant::now());
        }
    }
}

/// Returns true if the platform refused this query, and may answer others. 401, 403, 404 and 429 are other errors.
fn is_of_query(error: &PollError) -> bool {
    matches!(
        error,
        PollError::Status {
            status: 400..=499,
            ..
        }
    )
}

/// Returns the search queries: watched names, and the terms with the highest weights.
fn queries(instructions: &Instructions) -> Vec<String> {
    let names = instructions.names.iter();
    let watched = names.filter(|name| name.kind == NameKind::Watched);
    let names = watched.take(MAX_NAMES).map(|name| &name.text);
    let mut terms: Vec<_> = instructions.include.iter().collect();
    terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let mut queries: Vec<String> = Vec::new();
    for text in names.chain(terms.into_iter().map(|term| &term.text)) {
        if queries.len() < MAX_QUERIES && !queries.contains(text) {
            queries.push(text.clone());
        }
    }
    queries
}

/// Returns the best communities of a platform, as feeds.
fn ranked(platform: &Platform, found: Vec<(&str, Vec<Community>)>) -> Vec<FeedName> {
    let mut scores: BTreeMap<String, f64> = BTreeMap::new();
    for (query, communities) in found {
        let query = query.to_lowercase();
        for (community, rank) in communities.into_iter().take(LIMIT).zip(1_u8..) {
            let speaks = [&community.name, &community.about]
                .iter()
                .any(|text| text.to_lowercase().contains(&query));
            let score = if speaks { 5.0 } else { 0.5 } / f64::from(rank);
            *scores.entry(community.what).or_default() += score;
        }
    }
    let has_newest = platform.newest_feed().is_some();
    let mut best: Vec<(String, f64)> = scores
        .into_iter()
        .filter(|(what, _)| platform.accepts(what))
        .filter(|(what, _)| !(has_newest && (platform.kind.newest_has)(what)))
        // A community that only one query found is a coincidence, unless it is the first result or mentions the query.
        .filter(|(_, score)| *score >= 0.5)
        .collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    best.truncate(MAX_PER_PLATFORM);
    let feeds = best
        .iter()
        .map(|(what, _)| format!("{}:{what}", platform.name));
    feeds.filter_map(|feed| feed.parse().ok()).collect()
}

/// Rejects all requests: for platforms without a base URL, which are never searched, and for redirects to other
/// origins.
struct Nothing;

#[async_trait]
impl Fetch for Nothing {
    async fn get(
        &self,
        url: &Url,
        _headers: &[(&str, &str)],
        _limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        Err(FetchError::Forbidden(web_url::masked(url)))
    }
}

#[cfg(test)]
mod tests {
    use domain::instructions::{NameKind, Term, WatchedName};
    use platform_simulator::{NewPost, Simulator};
    use platforms::{Adapter, Cursor, PollLimits, Polled};

    use super::*;

    #[test]
    fn queries_are_watched_names_and_the_heaviest_terms() {
        let name = |text: &str, kind| WatchedName {
            text: text.to_owned(),
            kind,
            aliases: Vec::new(),
            context: Vec::new(),
            on_topic_percent: None,
            ordinary_posts: None,
            case_sensitive: false,
        };
        let term = |text: &str, weight| Term {
            text: text.to_owned(),
            weight,
        };
        let instructions = Instructions {
            names: vec![name("Own", NameKind::Own), name("Rival", NameKind::Watched)],
            include: vec![
                term("a", 0.1),
                term("b", 0.9),
                term("Rival", 0.8),
                term("c", 0.5),
                term("d", 0.4),
            ],
            ..Instructions::default()
        };
        assert_eq!(queries(&instructions), ["Rival", "b", "c", "d"]);
    }

    fn looking_for(text: &str) -> Instructions {
        let term = Term {
            text: text.to_owned(),
            weight: 1.0,
        };
        Instructions {
            include: vec![term],
            ..Instructions::default()
        }
    }

    fn in_community(platform: &str, community: &str) -> NewPost {
        NewPost {
            platform: platform.to_owned(),
            community: Some(community.to_owned()),
            title: "a post".to_owned(),
            author: "ana".to_owned(),
            ..NewPost::default()
        }
    }

    #[tokio::test]
    async fn communities_are_found_by_the_platforms_searches() {
        let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).unwrap();
        let many = (0..30).map(|n| in_community("reddit", &format!("espresso_{n:02}")));
        let mut posts: Vec<NewPost> = many.collect();
        posts.push(in_community("reddit", "cats"));
        posts.push(in_community("lemmy", "espresso"));
        simulator.publish(posts);
        let mut settings = simulator.settings();
        settings.push(simulator.settings_of("reddit"));
        let nothing: Arc<dyn Fetch> = Arc::new(Nothing);
        let built = Platforms::from_settings(&settings, &nothing).unwrap();
        let discovery = Discovery::of(built.iter().cloned().collect());
        let found = discovery
            .find("acme", Source::Forum, &looking_for("espresso"))
            .await;
        // Communities that are part of the Lemmy instance's newest posts are not listed again.
        let names: Vec<String> = found.feeds.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), MAX_PER_PLATFORM, "{names:?}");
        assert!(
            names
                .iter()
                .all(|name| name.starts_with("reddit:r/espresso_")),
            "{names:?}"
        );
        assert!(found.silent.is_empty());
        assert!(
            discovery
                .find("acme", Source::Network, &looking_for("espresso"))
                .await
                .feeds
                .is_empty()
        );
    }

    #[tokio::test]
    async fn unavailable_platform_is_left_out_and_others_are_searched() {
        let simulator = Simulator::start(([127, 0, 0, 1], 0).into()).unwrap();
        simulator.publish(vec![in_community("reddit", "espresso")]);
        let away = Settings {
            name: "away".to_owned(),
            kind: "lemmy".to_owned(),
            // No server listens on this port.
            base_url: Url::parse("http://127.0.0.1:9/").ok(),
            ..Settings::default()
        };
        let settings = [away, simulator.settings_of("reddit")];
        let nothing: Arc<dyn Fetch> = Arc::new(Nothing);
        let built = Platforms::from_settings(&settings, &nothing).unwrap();
        let discovery = Discovery::of(built.iter().cloned().collect());
        for _ in 0..2 {
            let found = discovery
                .find("acme", Source::Forum, &looking_for("espresso"))
                .await;
            let names: Vec<String> = found.feeds.iter().map(ToString::to_string).collect();
            assert_eq!(names, ["reddit:r/espresso"]);
            assert_eq!(found.silent, ["away"]);
        }
        assert!(!discovery.may_ask("acme", "away"));
    }

    #[tokio::test(start_paused = true)]
    async fn query_without_an_answer_does_not_end_the_searches_of_others() {
        /// Platform whose searches fail with a status, or else find nothing after two seconds.
        struct Scripted(Option<u16>);

        #[async_trait]
        impl Adapter for Scripted {
            async fn poll(
                &self,
                what: &str,
                _cursor: Option<&Cursor>,
                _limits: &PollLimits,
            ) -> Result<Polled, PollError> {
                Err(PollError::NotFound(what.to_owned()))
            }

            async fn communities(
                &self,
                _words: &str,
                _limit: usize,
            ) -> Result<Vec<Community>, PollError> {
                if let Some(status) = self.0 {
                    return Err(PollError::Status {
                        status,
                        retry_after: None,
                    });
                }
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(Vec::new())
            }
        }

        let settings = Settings {
            name: "forum".to_owned(),
            kind: "lemmy".to_owned(),
            base_url: Url::parse("http://127.0.0.1:9/").ok(),
            ..Settings::default()
        };
        let nothing: Arc<dyn Fetch> = Arc::new(Nothing);
        let built = Platforms::from_settings(&[settings], &nothing).unwrap();
        let terms = ["kettle", "teapot", "boiler"].map(|text| Term {
            text: text.to_owned(),
            weight: 1.0,
        });
        let instructions = Instructions {
            include: terms.into(),
            ..Instructions::default()
        };
        for (script, is_searched_for_others) in [
            (Scripted(Some(400)), true),
            (Scripted(Some(422)), true),
            // Three searches of two seconds end at the deadline of five.
            (Scripted(None), true),
            (Scripted(Some(500)), false),
        ] {
            let status = script.0;
            let mut platform = built.iter().next().unwrap().clone();
            platform.adapter = Arc::new(script);
            let discovery = Discovery::of(vec![platform]);
            let found = discovery
                .find("hostile", Source::Forum, &instructions)
                .await;
            assert_eq!(found.silent, ["forum"], "{status:?}");
            assert_eq!(
                discovery.may_ask("acme", "forum"),
                is_searched_for_others,
                "{status:?}"
            );
        }
    }

    #[test]
    fn searches_of_a_platform_are_limited_and_shared_by_account() {
        let discovery = Discovery::of(Vec::new());
        let asked = |account: &str| {
            let asked = (0..50).filter(|_| discovery.may_ask(account, "lemmy"));
            asked.count()
        };
        assert_eq!([asked("hostile"), asked("acme")], [6, 3]);
        let others = (0..50).map(|n| asked(&n.to_string())).sum::<usize>();
        assert_eq!(6 + 3 + others, SEARCHES_PER_MINUTE);
        assert!(discovery.may_ask("hostile", "reddit"));
    }
}
