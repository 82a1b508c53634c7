//! Matches posts against all plans.
//!
//! A transaction that finds changed plans stores nothing, and the posts are matched again. [`Matches`] then only
//! matches the changed plans, because those of a feed that many customers watch may change often.
//!
//! A post whose matching panics is left out and reported ([`Matches::broken`]), so that it does not stop the others of its
//! feed.
//!
//! A post may take a while: 500 terms of each of 1,000 Managers. So matching blocks no thread of the runtime, and an
//! account has one search at a time in each replica.

use std::{
    cell::LazyCell,
    collections::{BTreeSet, HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{
    FeedName, Id, ManagerName, Match, Post, Timestamp,
    scan::{ReaderOutcome, Span},
};
use matching::{Candidate, Index, Kept, PostText};
use outbound::large;
use store::scans::NewScan;
use tokio::runtime::{Handle, RuntimeFlavor};
use tracing::field::Empty;

use crate::{
    deciders::Deadlines,
    metrics,
    plans::{PlanChanges, Plans},
};

/// Number of matches after which no further post is matched: a few megabytes. It is small in tests, so that few matches make
/// several parts.
const MOST: usize = if cfg!(test) { 100 } else { 50_000 };
/// Maximum bytes of explanations that are held, and that are stored at a time. Also smaller in tests.
const EXPLAINED: usize = if cfg!(test) { 256 << 10 } else { 4 << 20 };
/// Number of matches of a post that are explained together, because each time costs a pass of the index over the post.
/// Smaller in tests.
const TOGETHER: usize = if cfg!(test) { 10 } else { 50 };
/// Number of matches after which a poll takes a place like one with a large document ([`large`]): it holds them until they
/// are stored. Also smaller in tests.
const MANY: usize = if cfg!(test) { 50 } else { 2_000 };
/// Bytes of explanations after which it takes one too. Also smaller in tests.
const LONG: usize = if cfg!(test) { 32 << 10 } else { 512 << 10 };
/// If matching panics for all of at least this many posts, the fault is not one of a post, and none is left out.
const GENERAL: usize = 10;
/// Time of matching after which other work of the thread and of the account has its turn.
const TURN: Duration = Duration::from_millis(10);

/// Matches of posts, brought up to date as plans change.
pub(crate) struct Matches<'a, W> {
    feed: &'a FeedName,
    /// The account that the matching counts for.
    account: Id,
    posts: &'a [Post],
    /// Selects the Managers to match.
    wanted: W,
    /// Namespaces whose account has no Scans left today: their matches are refused, and not explained.
    used_up: Arc<HashSet<Id>>,
    index: Arc<Index>,
    /// Matches in the order of the posts, muted ones included, because a Namespace may remove a mute.
    found: Vec<Found>,
    /// Matches that an earlier transaction stored.
    stored: HashSet<Pick>,
    /// Positions of the posts whose matching panicked.
    broken: Mutex<BTreeSet<usize>>,
    /// Decisions after those of the index, so that a repeated transaction reads no post again. `None` for a rejected match.
    decided: Mutex<HashMap<Pick, Option<Decided>>>,
    /// Deadlines for all readings and questions. If it is `None`, each block has separate ones.
    deadlines: Option<Deadlines>,
    /// True if the reader and the model may be used for undecided matches.
    may_ask: bool,
    /// True if the current work takes a place for many matches.
    takes_place: bool,
}

/// Verdicts of the reader and the LLM filter on a match that becomes a Scan.
#[derive(Debug, Clone, Copy)]
struct Decided {
    score: f64,
    judged: bool,
    reader: Option<ReaderOutcome>,
}

/// A match, by its post and its Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pick {
    /// Position of the post.
    pub(crate) at: usize,
    pub(crate) manager: ManagerName,
}

struct Found {
    pick: Pick,
    is_excluded: bool,
    score: f64,
    /// Its explanation, unless those of the matches before it take [`EXPLAINED`] bytes: a post can match for thousands of
    /// Managers, with some ten kilobytes each.
    matched: Option<Box<Match>>,
}

impl<'a, W: Fn(&ManagerName, &Post) -> bool> Matches<'a, W> {
    /// Matches `posts` of `feed` against the plans of `index` that `wanted` selects. No further post is matched after
    /// [`MOST`] matches. [`Self::posts`] returns the posts that were matched, at least one; the caller goes on with the
    /// others.
    pub(crate) async fn of(
        plans: &Plans,
        index: Arc<Index>,
        account: Id,
        feed: &'a FeedName,
        posts: &'a [Post],
        wanted: W,
    ) -> Self {
        Self::of_any(plans, index, account, feed, posts, wanted, None).await
    }

    /// Same as [`Self::of`], for new posts, which must not wait long: one deadline holds for all their readings, and one
    /// for all questions of an account to the language model. Many matches take a place before further ones are found,
    /// because there may be as many polls as feeds. So call this without a connection.
    pub(crate) async fn of_first(
        plans: &Plans,
        index: Arc<Index>,
        account: Id,
        feed: &'a FeedName,
        posts: &'a [Post],
        wanted: W,
        used_up: Arc<HashSet<Id>>,
    ) -> Self {
        let used_up = Some(used_up);
        Self::of_any(plans, index, account, feed, posts, wanted, used_up).await
    }

    /// Same as [`Self::of_first`] with `used_up`, or as [`Self::of`] without.
    async fn of_any(
        plans: &Plans,
        index: Arc<Index>,
        account: Id,
        feed: &'a FeedName,
        posts: &'a [Post],
        wanted: W,
        used_up: Option<Arc<HashSet<Id>>>,
    ) -> Self {
        let is_new = used_up.is_some();
        let mut new = Self {
            feed,
            account,
            posts,
            wanted,
            used_up: used_up.unwrap_or_default(),
            index,
            found: Vec::new(),
            stored: HashSet::new(),
            broken: Mutex::default(),
            decided: Mutex::default(),
            deadlines: is_new.then(Deadlines::default),
            may_ask: true,
            takes_place: is_new,
        };
        let (found, matched) = new.search(plans, &new.index).await;
        new.found = found;
        new.posts = &posts[..matched];
        new
    }

    /// Makes later decisions use neither the reader nor the model, so that they can be made in a transaction.
    pub(crate) fn without_asking(self) -> Self {
        Self {
            may_ask: false,
            ..self
        }
    }

    pub(crate) fn used_up(&self) -> &Arc<HashSet<Id>> {
        &self.used_up
    }

    pub(crate) fn set_used_up(&mut self, namespaces: Arc<HashSet<Id>>) {
        self.used_up = namespaces;
    }

    /// Returns the index that produced these matches.
    pub(crate) fn index(&self) -> &Arc<Index> {
        &self.index
    }

    pub(crate) fn posts(&self) -> &'a [Post] {
        self.posts
    }

    /// Returns the posts whose matching panicked. Their other matches are not stored.
    pub(crate) fn broken(&self) -> Vec<&'a Post> {
        let broken = self.lock_broken();
        broken.iter().map(|at| &self.posts[*at]).collect()
    }

    fn lock_broken(&self) -> MutexGuard<'_, BTreeSet<usize>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_decided(&self) -> MutexGuard<'_, HashMap<Pick, Option<Decided>>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the matches to store, in the order of the posts, as far as they are not rejected yet.
    pub(crate) fn picks(&self) -> Vec<Pick> {
        let (broken, decided) = (self.lock_broken(), self.lock_decided());
        let new = self.found.iter().filter(|found| {
            let is_new = !found.is_excluded && !self.stored.contains(&found.pick);
            let is_rejected = matches!(decided.get(&found.pick), Some(None));
            is_new && !is_rejected && !broken.contains(&found.pick.at)
        });
        new.map(|found| found.pick).collect()
    }

    /// Returns the first of these matches in full, until they take [`EXPLAINED`] bytes, and the number of picks that
    /// they cover: at least one. Matches of a post are explained [`TOGETHER`] at a time.
    pub(crate) async fn explain(&self, plans: &Plans, picks: &[Pick]) -> (Vec<NewScan<'a>>, usize) {
        let mut scans = Vec::new();
        let (mut covered, mut bytes) = (0, 0);
        for of_post in picks.chunk_by(|one, next| one.at == next.at) {
            let post = &self.posts[of_post[0].at];
            let _turn = plans.matching.take(self.account, 1).await;
            let before = covered;
            let explained = blocking(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    let text = LazyCell::new(|| PostText::from(post));
                    for together in of_post.chunks(TOGETHER) {
                        if bytes >= EXPLAINED {
                            break;
                        }
                        covered += together.len();
                        for (manager, matched) in self.explained(together, &text) {
                            bytes += bytes_of(&matched);
                            scans.push(NewScan {
                                manager,
                                post,
                                matched,
                            });
                        }
                    }
                }))
            });
            if explained.is_err() {
                covered = before + of_post.len();
                self.lock_broken().insert(of_post[0].at);
            }
            if bytes >= EXPLAINED {
                break;
            }
        }
        (scans, covered)
    }

    /// Same as [`Self::decide`], but for all of `picks`, which must be few.
    pub(crate) async fn decide_few(&self, plans: &Plans, picks: &[Pick]) -> Vec<NewScan<'a>> {
        let mut all = Vec::new();
        let mut left = picks;
        while !left.is_empty() {
            let (scans, covered) = self.decide(plans, left).await;
            all.extend(scans);
            left = &left[covered..];
        }
        all
    }

    /// Same as [`Self::explain`], but returns only matches that become Scans. Each is decided once. Call without a
    /// connection: a model may be asked, except after [`Self::without_asking`].
    pub(crate) async fn decide(&self, plans: &Plans, picks: &[Pick]) -> (Vec<NewScan<'a>>, usize) {
        let (explained, covered) = self.explain(plans, picks).await;
        if plans.decides_alone() {
            return (explained, covered);
        }
        let (mut places, mut undecided) = (Vec::new(), Vec::new());
        let mut accepted: Vec<(usize, NewScan<'a>)> = Vec::new();
        {
            let decided = self.lock_decided();
            let mut rest = picks.iter().enumerate();
            for mut scan in explained {
                let Some((place, pick)) = rest.find(|(_, pick)| self.is_of(pick, &scan)) else {
                    continue;
                };
                match decided.get(pick) {
                    Some(Some(decided)) => {
                        decided.apply(&mut scan.matched);
                        accepted.push((place, scan));
                    }
                    Some(None) => {}
                    None => {
                        places.push(place);
                        undecided.push(scan);
                    }
                }
            }
        }
        let of_block = Deadlines::default();
        let deadlines = self.deadlines.as_ref().unwrap_or(&of_block);
        let deadlines = self.may_ask.then_some(deadlines);
        let new = plans.decide(self.account, undecided, &self.used_up, deadlines);
        let new = new.await;
        let mut new = new.into_iter().peekable();
        let mut decided = self.lock_decided();
        for place in places {
            let pick = &picks[place];
            let scan = new.next_if(|scan| self.is_of(pick, scan));
            // Matches that the quota refuses are decided once it allows Scans again.
            if !self.used_up.contains(&pick.manager.namespace) {
                let outcome = scan.as_ref().map(|scan| Decided::of(&scan.matched));
                decided.insert(*pick, outcome);
            }
            accepted.extend(scan.map(|scan| (place, scan)));
        }
        accepted.sort_by_key(|(place, _)| *place);
        (
            accepted.into_iter().map(|(_, scan)| scan).collect(),
            covered,
        )
    }

    /// Decides on all matches, or until `is_over`, so that [`Self::decide`] waits for nothing afterwards. Takes them
    /// post by post, so that each post is read once for all Managers.
    pub(crate) async fn decide_all(&self, plans: &Plans, block: usize, is_over: impl Fn() -> bool) {
        if plans.decides_alone() {
            return;
        }
        let picks = self.picks();
        let mut left = &picks[..];
        while !left.is_empty() && !is_over() {
            let (_, covered) = self.decide(plans, &left[..left.len().min(block)]).await;
            left = &left[covered..];
        }
    }

    fn is_of(&self, pick: &Pick, scan: &NewScan<'_>) -> bool {
        pick.manager == scan.manager && std::ptr::eq(&self.posts[pick.at], scan.post)
    }

    /// Returns these matches of a post in full.
    fn explained(
        &self,
        picks: &[Pick],
        text: &LazyCell<PostText, impl FnOnce() -> PostText>,
    ) -> Vec<(ManagerName, Match)> {
        let mut matches = Vec::with_capacity(picks.len());
        // Positions of the matches whose explanations are not held.
        let mut missing = HashMap::new();
        for pick in picks {
            #[cfg(test)]
            tests::stumble(&self.posts[pick.at], "explained");
            let Ok(at) = self.found.binary_search_by_key(pick, |found| found.pick) else {
                continue;
            };
            let found = &self.found[at];
            let is_refused = self.used_up.contains(&pick.manager.namespace);
            let held = found.matched.as_deref().filter(|_| !is_refused);
            if held.is_none() && !is_refused {
                missing.insert(pick.manager, matches.len());
            }
            let matched = held.cloned().unwrap_or_else(|| unexplained(found.score));
            matches.push((pick.manager, matched));
        }
        if !missing.is_empty() {
            let wanted = |manager: &ManagerName| missing.contains_key(manager);
            self.index
                .explain(text, self.feed, wanted, |manager, decision| {
                    if let Some(&at) = missing.get(&manager) {
                        matches[at].1 = matching::explain(decision, text);
                    }
                });
        }
        matches
    }

    pub(crate) fn record_stored(&mut self, picks: &[Pick]) {
        self.stored.extend(picks);
    }

    /// Updates the matches to the current index, and leaves out the last posts if there are too many matches then. Returns
    /// the number of plans that were matched for it; `None` if all were.
    pub(crate) async fn update(&mut self, plans: &Plans) -> Option<usize> {
        let index = plans.index();
        let Some(changes) = plans.changes_between(self.index.version(), index.version()) else {
            let (found, matched) = self.search(plans, &index).await;
            self.found = found;
            self.shorten(matched);
            self.lock_decided().clear();
            self.index = index;
            return None;
        };
        let PlanChanges {
            managers,
            namespaces,
        } = changes;
        self.found
            .retain(|found| !managers.contains(&found.pick.manager));
        self.lock_decided()
            .retain(|pick, _| !managers.contains(&pick.manager));
        let changed = managers.iter().filter_map(|name| {
            let plan = index.plan(name)?;
            plan.watches(self.feed).then(|| (*name, Arc::new(plan)))
        });
        let changed = Index::build(changed, index.version());
        if !changed.is_empty() {
            let (found, matched) = self.search(plans, &changed).await;
            self.found.extend(found);
            self.found.sort_by_key(|found| found.pick);
            self.shorten(matched);
            self.take_place(self.found.len(), 0).await;
        }
        for of_post in { &mut self.found }.chunk_by_mut(|one, next| one.pick.at == next.pick.at) {
            let concerned = |found: &&mut Found| namespaces.contains(&found.pick.manager.namespace);
            let mut concerned = of_post.iter_mut().filter(concerned).peekable();
            let Some(first) = concerned.peek() else {
                continue;
            };
            let post = &self.posts[first.pick.at];
            let text = PostText::from(post);
            let candidate = Candidate::new(post, &text);
            for found in concerned {
                found.is_excluded = is_excluded(plans, &found.pick.manager, &candidate);
            }
        }
        self.index = index;
        Some(changed.len())
    }

    /// Keeps the first `matched` posts, and of these only as many as have [`MOST`] matches together: at least one.
    fn shorten(&mut self, matched: usize) {
        let exceeding = self.found.get(MOST).map(|found| found.pick.at.max(1));
        let end = exceeding.map_or(matched, |at| at.min(matched));
        self.posts = &self.posts[..end];
        self.found.retain(|found| found.pick.at < end);
        self.lock_broken().retain(|at| *at < end);
    }

    /// Waits for a place if there are many matches. Returns true if there are.
    async fn take_place(&self, matches: usize, explained: usize) -> bool {
        let is_large = is_large(matches, explained);
        if is_large && self.takes_place {
            large::take_place().await;
        }
        is_large
    }

    /// Returns the matches of the first posts, and the number of these: no further post is matched after [`MOST`]
    /// matches. Records the posts that cannot be matched.
    async fn search(&self, plans: &Plans, index: &Index) -> (Vec<Found>, usize) {
        let Self { posts, feed, .. } = *self;
        let span = tracing::info_span!("match posts", posts = posts.len(), matches = Empty);
        let mut matches = Vec::new();
        let (mut matched, mut explained, mut panics) = (0, 0, 0);
        let mut busy = Duration::ZERO;
        let mut has_place = false;
        while matched < posts.len() && matches.len() < MOST {
            let turn = plans.matching.take(self.account, 1).await;
            blocking(|| {
                let _span = span.enter();
                let begin = Instant::now();
                for (at, post) in posts.iter().enumerate().skip(matched) {
                    matched = at + 1;
                    let first = matches.len();
                    let found = catch_unwind(AssertUnwindSafe(|| {
                        #[cfg(test)]
                        tests::stumble(post, "matched");
                        let text = PostText::from(post);
                        let candidate = Candidate::new(post, &text);
                        index.search(&text, feed, |manager, score, decide| {
                            if !(self.wanted)(&manager, post)
                                || plans.falls_short(&manager, score, post)
                            {
                                return;
                            }
                            let explains =
                                explained < EXPLAINED && !self.used_up.contains(&manager.namespace);
                            let matched = explains.then(|| matching::explain(decide(), &text));
                            explained += matched.as_ref().map_or(0, bytes_of);
                            let matched = matched.map(Box::new);
                            matches.push(Found {
                                pick: Pick { at, manager },
                                is_excluded: is_excluded(plans, &manager, &candidate),
                                score,
                                matched,
                            });
                        })
                    }));
                    let spent = match found {
                        Ok(spent) => spent,
                        Err(panic) => {
                            matches.truncate(first);
                            panics += 1;
                            if panics >= GENERAL && panics == posts.len() {
                                resume_unwind(panic);
                            }
                            self.lock_broken().insert(at);
                            continue;
                        }
                    };
                    if spent > 0 {
                        metrics::MATCH_BUDGET_SPENT.inc();
                        tracing::debug!(post.id = %post.id, feed.name = %feed.masked(), plans = spent, "searches of a post spent their budget");
                    }
                    matches[first..].sort_by_key(|found| found.pick);
                    let needs_place = !has_place && is_large(matches.len(), explained);
                    if matches.len() >= MOST || needs_place || begin.elapsed() > TURN {
                        break;
                    }
                }
                busy += begin.elapsed();
            });
            // Others of the account go on while this waits.
            drop(turn);
            has_place = self.take_place(matches.len(), explained).await;
        }
        metrics::MATCH_DURATION.observe(busy.as_secs_f64());
        span.record("matches", matches.len());
        (matches, matched)
    }
}

/// Returns true if work with so many matches, and bytes of explanations, needs a place.
fn is_large(matches: usize, explained: usize) -> bool {
    matches >= MANY || explained >= LONG
}

impl Decided {
    fn of(matched: &Match) -> Self {
        Self {
            score: matched.score,
            judged: matched.judged,
            reader: matched.reader,
        }
    }

    fn apply(self, matched: &mut Match) {
        let Self {
            score,
            judged,
            reader,
        } = self;
        matched.score = score;
        matched.judged = judged;
        matched.reader = reader;
    }
}

/// Returns a refused match, which needs no explanation.
fn unexplained(score: f64) -> Match {
    Match {
        score,
        ..Match::default()
    }
}

/// Runs long work without blocking other tasks of the thread. On a runtime with a single thread that is not possible.
fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Approximate memory of an explanation.
fn bytes_of(matched: &Match) -> usize {
    let terms = matched
        .terms
        .iter()
        .chain(matched.spans.iter().map(|span| &span.term));
    let texts: usize = terms.map(|term| term.len() + size_of::<String>()).sum();
    texts + matched.spans.len() * size_of::<Span>()
}

fn is_excluded(plans: &Plans, manager: &ManagerName, candidate: &Candidate<'_>) -> bool {
    let kept = plans
        .screens()
        .why_excluded(manager, candidate, Timestamp::now());
    if let Some(kept) = kept {
        let reason = match kept {
            Kept::Muted => "muted",
            Kept::Language => "language",
        };
        metrics::SCREENED.with_label_values(&[reason]).inc();
    }
    kept.is_some()
}

#[cfg(test)]
mod tests;
