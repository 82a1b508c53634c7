//! Reading: a small transformer ([`reader`]) decides on doubtful posts, if the operator configured it.
//!
//! The index finds posts by words, which cannot tell whether a post needs what the customer sells. So each match of a
//! Manager with a focus whose score suffices ([`is_candidate`](reader::is_candidate)) is compared with what the
//! customer sells, and gets the reader's score instead. The Manager's threshold then decides as before.
//!
//! A post is read once for all Managers of a block of matches. Customers that were read before come first, so that a
//! new or changed Manager does not delay others. Readings take turns: one account has at most half of them. A post
//! counts for the account of its poll, and what a customer sells for the customer's. After
//! [`PostReader::max_wait`](config::PostReader::max_wait), no further reading of the poll begins. A Manager has a
//! budget of posts for the day. A post that is not read keeps its score, and its Scan says why ([`ReaderOutcome`]).
//!
//! Scores are kept for a while, because a post comes again if its poll could not be stored.

mod budget;
mod customers;

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::shares::Shares;
use domain::{Id, ManagerName, Post, scan::ReaderOutcome};
use matching::{Index, PostText};
use reader::{Customer, Reader, candidate_threshold, obstacle};
use runtime::{background, config};
use store::{
    Pool,
    plans::{self, Seller},
    scans::NewScan,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{generations::Generations, metrics, thresholds::Rule};
use budget::Budget;
pub(crate) use customers::hash_of_seller;
use customers::{Customers, Sold};

/// Maximum number of readings that wait for the reader's thread or use it: the second begins as soon as the first ends.
const TURNS: usize = 2;
/// Outcomes in a generation of the cache: some 4 MB.
const OUTCOMES: usize = 50_000;
/// Customers whose instructions are loaded at a time.
const SELLERS: usize = 20;

pub(crate) struct Reading {
    /// `None` if its files cannot be used.
    reader: Option<Arc<Reader>>,
    max_wait: Duration,
    turns: Arc<Semaphore>,
    shares: Shares,
    budget: Mutex<Budget>,
    customers: Customers,
    outcomes: Mutex<Generations<Key, Outcome>>,
    hasher: RandomState,
}

/// A match to decide on.
pub(crate) struct Doubtful<'s, 'a> {
    pub(crate) rule: Rule,
    pub(crate) scan: &'s mut NewScan<'a>,
}

/// A block of matches that is judged before a deadline.
struct Block<'a> {
    reader: &'a Arc<Reader>,
    index: &'a Arc<Index>,
    account: Id,
    deadline: Instant,
}

/// The Manager, and a hash of its instructions and the post.
type Key = (ManagerName, u64);
/// The reader's score, or why there is none.
type Outcome = Result<f64, ReaderOutcome>;
type ReadPost = Result<reader::Post, ReaderOutcome>;
type Turn = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Reading {
    /// Loads the files on a thread of low priority, which the threads of the model inherit.
    pub(crate) async fn new(settings: &config::PostReader, hasher: RandomState) -> Self {
        let folder = PathBuf::from(&settings.folder);
        let reader = background::spawn(move || Reader::in_folder(&folder)).await;
        let reader = match reader {
            Ok(Ok(reader)) => Some(Arc::new(reader)),
            Ok(Err(error)) => {
                tracing::error!("posts are judged without the reader: {error}");
                None
            }
            Err(_panic) => {
                tracing::error!("posts are judged without the reader: an internal error");
                None
            }
        };
        metrics::READER_READY.set(i64::from(reader.is_some()));
        Self {
            reader,
            max_wait: settings.max_wait,
            turns: Arc::new(Semaphore::new(TURNS)),
            shares: Shares::of(TURNS),
            budget: Mutex::new(Budget::new(settings.max_per_manager_per_day)),
            customers: Customers::new(),
            outcomes: Mutex::new(Generations::new(OUTCOMES)),
            hasher,
        }
    }

    /// Returns the lowest score of a post that is read for a Manager with this threshold.
    pub(crate) fn candidate_threshold(&self, threshold: f64) -> f64 {
        match self.reader {
            Some(_) => candidate_threshold(threshold),
            None => threshold,
        }
    }

    /// Returns how long after a poll's matching its last reading may begin.
    pub(crate) fn max_wait(&self) -> Duration {
        self.max_wait
    }

    /// Removes Managers that no longer exist, and all outcomes.
    pub(crate) fn retain(&self, exists: impl Fn(&ManagerName) -> bool) {
        self.customers.retain(exists);
        self.lock_outcomes().clear();
    }

    /// Replaces the scores of candidates by the reader's, and records in each what the reader did.
    pub(crate) async fn judge(
        &self,
        pool: &Pool,
        index: &Arc<Index>,
        account: Id,
        mut matches: Vec<Doubtful<'_, '_>>,
        deadline: Instant,
    ) {
        let Some(reader) = &self.reader else {
            settle_all(matches, ReaderOutcome::Unavailable);
            return;
        };
        matches.retain_mut(|one| !self.is_settled(one));
        let mut sold = HashMap::new();
        let mut missing = HashSet::new();
        for one in &matches {
            let (manager, seller) = (one.scan.manager, one.rule.seller);
            match self.customers.get(&manager, seller) {
                Some(known) => _ = sold.insert(manager, known),
                None => _ = missing.insert(manager),
            }
        }
        let block = Block {
            reader,
            index,
            account,
            deadline,
        };
        let mut later = Vec::new();
        for matches in by_post(matches) {
            let (known, others): (Vec<_>, Vec<_>) =
                { matches.into_iter() }.partition(|one| sold.contains_key(&one.scan.manager));
            let post = self.judge_post(&block, known, &sold, None).await;
            if !others.is_empty() {
                later.push((others, post));
            }
        }
        let sold = self.customers_of(reader, pool, missing, deadline).await;
        for (others, post) in later {
            self.judge_post(&block, others, &sold, post).await;
        }
    }

    /// Settles matches that need no reading. Returns false for the others.
    fn is_settled(&self, one: &mut Doubtful<'_, '_>) -> bool {
        let (rule, scan) = (&one.rule, &mut *one.scan);
        if let Some(outcome) = self.lock_outcomes().get(&self.key(rule, scan)) {
            apply(scan, outcome);
            return true;
        }
        let outcome = if is_untitled(scan.post) {
            Some(ReaderOutcome::Untitled)
        } else if let Some(Err(outcome)) = self.customers.get(&scan.manager, rule.seller) {
            Some(outcome)
        } else {
            let is_spent = self.lock_budget().is_spent(&scan.manager, Instant::now());
            is_spent.then_some(ReaderOutcome::OverBudget)
        };
        if let Some(outcome) = outcome {
            settle(scan, outcome);
        }
        outcome.is_some()
    }

    /// Judges matches of one post, and reads it first if necessary. Returns the post if it was read.
    async fn judge_post(
        &self,
        block: &Block<'_>,
        matches: Vec<Doubtful<'_, '_>>,
        sold: &HashMap<ManagerName, Sold>,
        read: Option<Arc<ReadPost>>,
    ) -> Option<Arc<ReadPost>> {
        let (mut asked, mut customers) = (Vec::new(), Vec::new());
        for one in matches {
            let manager = one.scan.manager;
            match sold.get(&manager) {
                _ if self.lock_budget().is_spent(&manager, Instant::now()) => {
                    settle(one.scan, ReaderOutcome::OverBudget);
                }
                Some(Ok(customer)) => {
                    customers.push((manager, Arc::clone(customer)));
                    asked.push(one);
                }
                Some(Err(outcome)) => settle(one.scan, *outcome),
                None => settle(one.scan, ReaderOutcome::Busy),
            }
        }
        let post = asked.first()?.scan.post.clone();
        let deadline = block.deadline;
        let Some(turn) = self.turn(block.account, deadline).await else {
            settle_all(asked, ReaderOutcome::Busy);
            return read;
        };
        let (begin, is_new) = (Instant::now(), read.is_none());
        let (reader, index) = (Arc::clone(block.reader), Arc::clone(block.index));
        let of = index.version();
        let judged = background::spawn(move || {
            // The turn lasts until the work ends, even if its poll has stopped waiting.
            let _turn = turn;
            let read = read.unwrap_or_else(|| Arc::new(read_post(&reader, &post)));
            let outcomes = judge(&reader, &index, &post, &read, &customers, deadline);
            (Some(read), outcomes)
        });
        let (read, outcomes) = judged.await.unwrap_or_else(|_panic| {
            tracing::warn!("a post cannot be judged by the reader: an internal error");
            (None, vec![Err(ReaderOutcome::Unavailable); asked.len()])
        });
        if is_new {
            metrics::READER_DURATION.observe(begin.elapsed().as_secs_f64());
        }
        for (Doubtful { rule, scan }, outcome) in asked.into_iter().zip(outcomes) {
            // Otherwise the rule is newer than the index, which has other instructions. Versions only grow, except by a
            // reload, which clears the cache.
            let is_known = rule.since.number <= of.number;
            if is_known && outcome != Err(ReaderOutcome::Busy) {
                let key = self.key(&rule, scan);
                self.lock_outcomes().put(key, outcome, 1);
            }
            if outcome.is_ok() {
                self.lock_budget().charge(scan.manager, Instant::now());
            }
            count(apply(scan, outcome));
        }
        read
    }

    /// Returns what these Managers' customers sell, as far as time allows.
    async fn customers_of(
        &self,
        reader: &Arc<Reader>,
        pool: &Pool,
        missing: HashSet<ManagerName>,
        deadline: Instant,
    ) -> HashMap<ManagerName, Sold> {
        let mut found = HashMap::new();
        // A set is iterated in another order each time, so the deadline does not always leave out the same Managers.
        let missing: Vec<_> = missing.into_iter().collect();
        for some in missing.chunks(SELLERS) {
            if Instant::now() >= deadline {
                break;
            }
            let load = async {
                let mut conn = pool.get().await?;
                Ok::<_, store::Error>(plans::sellers(&mut conn, some).await?)
            };
            let mut sellers = match timeout_at(deadline, load).await {
                Ok(Ok(sellers)) => sellers,
                Ok(Err(error)) => {
                    let error = anyhow::Error::from(error);
                    tracing::debug!("posts are judged without the reader: {error:#}");
                    HashMap::new()
                }
                Err(_elapsed) => break,
            };
            for manager in some {
                let sold = match sellers.remove(manager) {
                    Some(seller) => self.read(reader, *manager, seller, deadline).await,
                    // The Manager is gone, and its matches will be decided again.
                    None => Err(ReaderOutcome::Unavailable),
                };
                found.insert(*manager, sold);
            }
        }
        found
    }

    /// Reads what a customer sells and keeps it.
    async fn read(
        &self,
        reader: &Arc<Reader>,
        manager: ManagerName,
        seller: Seller,
        deadline: Instant,
    ) -> Sold {
        let Seller {
            account,
            focus,
            sells,
            names,
        } = seller;
        let focus = focus.ok_or(ReaderOutcome::Unavailable)?;
        let hash = hash_of_seller(&self.hasher, Some(focus), sells.as_ref(), &names);
        let Some(sells) = sells.filter(|sells| !sells.offers.is_empty()) else {
            return self
                .customers
                .keep(manager, hash, Err(ReaderOutcome::NoOffers));
        };
        let turn = self.turn(account, deadline).await;
        let turn = turn.ok_or(ReaderOutcome::Busy)?;
        // Another poll may have read it meanwhile.
        if let Some(known) = self.customers.get(&manager, hash) {
            return known;
        }
        let reader = Arc::clone(reader);
        let read = background::spawn(move || {
            let _turn = turn;
            reader.customer_of(focus, Some(&sells), &names)
        });
        let sold = match read.await {
            Ok(Ok(customer)) => Ok(Arc::new(customer)),
            Ok(Err(error)) => {
                tracing::debug!(manager.name = %manager, "the reader does not compare posts with what the customer sells: {error}");
                Err(error.outcome())
            }
            Err(_panic) => {
                tracing::warn!(manager.name = %manager, "the reader cannot read what the customer sells: an internal error");
                Err(ReaderOutcome::Unavailable)
            }
        };
        self.customers.keep(manager, hash, sold)
    }

    async fn turn(&self, account: Id, deadline: Instant) -> Option<Turn> {
        // Without this check, a free turn would be taken even after the deadline.
        if Instant::now() >= deadline {
            return None;
        }
        let turn = async {
            let share = self.shares.take(account, 1).await?;
            let turns = Arc::clone(&self.turns);
            Some((share, turns.acquire_owned().await.ok()?))
        };
        timeout_at(deadline, turn).await.ok().flatten()
    }

    fn key(&self, rule: &Rule, scan: &NewScan<'_>) -> Key {
        let Post {
            id, title, text, ..
        } = scan.post;
        let hash = self.hasher.hash_one((rule.plan, id, title, text));
        (scan.manager, hash)
    }

    fn lock_budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_outcomes(&self) -> MutexGuard<'_, Generations<Key, Outcome>> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn is_untitled(post: &Post) -> bool {
    let title = post.title.as_deref().unwrap_or_default();
    title.trim().is_empty()
}

/// Groups matches by their post, in the order of the first ones.
fn by_post<'s, 'a>(matches: Vec<Doubtful<'s, 'a>>) -> Vec<Vec<Doubtful<'s, 'a>>> {
    let mut places: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<Doubtful<'s, 'a>>> = Vec::new();
    for one in matches {
        let post = std::ptr::from_ref(one.scan.post).addr();
        let place = *places.entry(post).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Blocks the thread for about 10 ms.
fn read_post(reader: &Reader, post: &Post) -> ReadPost {
    let (title, text) = (post.title.as_deref(), post.text.as_deref());
    let title = title.unwrap_or_default();
    match obstacle(title, &PostText::from(post)) {
        Some(obstacle) => Err(obstacle),
        None => reader
            .post(title, text.unwrap_or_default())
            .map_err(|error| {
                tracing::warn!("a post cannot be judged by the reader: {error}");
                error.outcome()
            }),
    }
}

/// Returns the outcome for each Manager, in their order. No pair begins after the deadline.
fn judge(
    reader: &Reader,
    index: &Index,
    post: &Post,
    read: &ReadPost,
    customers: &[(ManagerName, Arc<Customer>)],
    deadline: Instant,
) -> Vec<Outcome> {
    let words = PostText::from(post);
    let outcomes = customers.iter().map(|(manager, customer)| {
        let read = read.as_ref().map_err(|outcome| *outcome)?;
        if std::time::Instant::now() >= deadline.into_std() {
            return Err(ReaderOutcome::Busy);
        }
        // Plans are unpacked one at a time, to save memory.
        let plan = index.plan(manager).ok_or(ReaderOutcome::Unavailable)?;
        let score = reader.score(&plan, &words, read, customer);
        score.ok_or(ReaderOutcome::Unavailable)
    });
    outcomes.collect()
}

fn settle_all(matches: Vec<Doubtful<'_, '_>>, outcome: ReaderOutcome) {
    matches
        .into_iter()
        .for_each(|one| settle(one.scan, outcome));
}

fn settle(scan: &mut NewScan<'_>, outcome: ReaderOutcome) {
    count(apply(scan, Err(outcome)));
}

/// Writes an outcome into a match.
fn apply(scan: &mut NewScan<'_>, outcome: Outcome) -> ReaderOutcome {
    if let Ok(score) = outcome {
        scan.matched.score = score;
    }
    let outcome = outcome.err().unwrap_or(ReaderOutcome::Judged);
    scan.matched.reader = Some(outcome);
    outcome
}

fn count(outcome: ReaderOutcome) {
    let label = outcome.as_str().to_ascii_lowercase();
    metrics::READER.with_label_values(&[&label]).inc();
}

#[cfg(test)]
mod tests {
    use std::{hash::RandomState, time::Duration};

    use domain::Id;
    use runtime::config::PostReader;
    use tokio::time::Instant;

    use super::Reading;

    async fn reading() -> Reading {
        let settings = PostReader {
            folder: concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model").to_owned(),
            max_wait: Duration::from_secs(1),
            max_per_manager_per_day: 1,
        };
        Reading::new(&settings, RandomState::new()).await
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_model_runs_at_low_priority() {
        use std::fs;

        /// The 19th field; the second one is a name in parentheses.
        fn nice(stat: &str) -> i32 {
            let (_, fields) = stat.rsplit_once(')').unwrap();
            fields.split_whitespace().nth(16).unwrap().parse().unwrap()
        }
        let own = nice(&fs::read_to_string("/proc/thread-self/stat").unwrap());
        let reading = reading().await;
        assert!(reading.reader.is_some());
        let mut of_model = Vec::new();
        for thread in fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap().path();
            if fs::read_to_string(thread.join("comm")).is_ok_and(|name| name.starts_with("rten-")) {
                of_model.push(nice(&fs::read_to_string(thread.join("stat")).unwrap()));
            }
        }
        assert!(!of_model.is_empty());
        assert!(
            of_model.iter().all(|nice| *nice == own.max(10)),
            "{own} {of_model:?}"
        );
    }

    #[tokio::test]
    async fn an_account_leaves_a_turn_to_others() {
        let reading = reading().await;
        let (one, other) = (Id::generate(), Id::generate());
        let later = Instant::now() + Duration::from_secs(3_600);
        let _held = reading.turn(one, later).await.unwrap();
        assert!(reading.turn(one, Instant::now()).await.is_none());
        let _other = reading.turn(other, later).await.unwrap();
        let soon = Instant::now() + Duration::from_millis(10);
        assert!(
            reading.turn(Id::generate(), soon).await.is_none(),
            "all turns are taken"
        );
    }
}
