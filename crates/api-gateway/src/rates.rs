//! The rate limit: what a key, and all keys of an account, may spend in a minute, on all replicas together.
//!
//! Points are leased from the database, some at a time; `store::rates` has the rules, and the proof that
//! no window of a minute lets more through than the limit. Here is the side of the replica: a lease for
//! each key, asked for when it is needed, by one request at a time while the key's others wait; larger
//! for a key that spends what it leases; settled when it is over or more is wanted, and at the end. A lease takes its
//! points from the key and from its account, or from neither. Each account has one request for a
//! lease at a time on each replica, however many keys it has: its ledger is one row, and the database has few connections.
//!
//! Cost: none but a lock and a look-up for a request that finds points; one short transaction for a new
//! lease, which is 3 % of the requests at best, and at worst one each five seconds for a key that
//! makes few requests. A key or an account that is refused asks the database four times a second at most, however
//! many requests it makes.
//!
//! Without the database nothing is let through once the leases are spent, and the answer is 503: what
//! follows would need the database anyway, and the limit holds in any case.

mod lease;
#[cfg(test)]
mod simulation;

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::http::{
    Method,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use domain::{Id, Timestamp};
use prometheus::IntCounter;
use store::rates::{Limits, Payer, Settlement, SharedGrant, Wanted};
use tokio::sync::Mutex as Gate;

use crate::{ApiError, authenticate::guesses::BURST, state::AppState};
use lease::Lease;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// How long a refusal is believed at most: others may give points back.
const REFUSED_FOR_MS: i64 = 250;
/// The largest lease is this part of the limit.
const LARGEST_SHARE: u32 = 20;
/// The first lease of a key is this part of the largest.
const FIRST_SHARE: u32 = 4;

static LIMITED: LazyLock<IntCounter> = LazyLock::new(|| {
    let metric = IntCounter::new(
        "earshot_rate_limited_total",
        "Requests that were refused for the rate of their key or its account.",
    )
    .expect("the name is valid");
    if let Err(error) = prometheus::default_registry().register(Box::new(metric.clone())) {
        tracing::error!(%error, "a metric will be missing");
    }
    metric
});

/// Cost of a request in points.
pub(crate) fn cost(method: &Method, path: &str) -> u32 {
    const COSTLY: [&str; 4] = [":test", ":preview", ":replay", ":backfill"];
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        1
    } else if COSTLY.iter().any(|verb| path.ends_with(verb)) {
        20
    } else {
        5
    }
}

/// State of a key or its account, whichever has fewer points left, as far as this replica knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    limit: u32,
    remaining: u32,
    reset_in_ms: i64,
}

impl Standing {
    /// The headers of every answer to a request with a key that works.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        // A second is over when it is over.
        let reset = Timestamp::now().to_chrono().timestamp() + seconds(self.reset_in_ms);
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(reset));
    }
}

/// Refusal of an address that sent invalid keys: it has no points until `wait` is over.
pub(crate) fn too_many_failures(wait: Duration) -> ApiError {
    let reset_in_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    ApiError::RateLimited {
        retry_after: seconds(reset_in_ms),
        standing: Standing {
            limit: BURST,
            remaining: 0,
            reset_in_ms,
        },
    }
}

/// All of them, begun ones too.
fn seconds(millis: i64) -> i64 {
    millis.max(0).saturating_add(999) / 1_000
}

pub(crate) struct Meter {
    /// The account's is the default.
    limits: Limits,
    begin: Instant,
    known: Mutex<Known>,
}

/// Keys and accounts with leases or believed refusals.
#[derive(Default)]
struct Known {
    keys: HashMap<Id, Arc<Key>>,
    accounts: HashMap<Id, Arc<Account>>,
}

struct Key {
    payer: Payer,
    account: Arc<Account>,
    book: Mutex<Book>,
}

/// State that the keys of an account share.
#[derive(Default)]
struct Account {
    /// Held during a request to the database.
    gate: Arc<Gate<()>>,
    /// Refusal by the account's ledger.
    refusal: Mutex<Option<Refusal>>,
}

/// State of a key on this replica.
#[derive(Default)]
struct Book {
    lease: Option<Lease>,
    refusal: Option<Refusal>,
    /// How many points to ask for next; 0 before the first.
    appetite: u32,
    /// Limit of the account, where it is known.
    account_limit: Option<u32>,
    /// State of the ledger with fewer points left, when our lease was granted.
    limit: u32,
    free: u32,
    reset_ms: i64,
}

#[derive(Clone, Copy)]
struct Refusal {
    cost: u32,
    believed_until_ms: i64,
    retry_ms: i64,
    limit: u32,
    free: u32,
    reset_ms: i64,
}

impl Refusal {
    /// Refuses `cost`, if that is known to exceed what is left.
    fn refuse(&self, now_ms: i64, cost: u32) -> Option<ApiError> {
        if cost < self.cost || now_ms >= self.believed_until_ms {
            return None;
        }
        LIMITED.inc();
        Some(ApiError::RateLimited {
            retry_after: seconds(self.retry_ms - now_ms).max(1),
            standing: Standing {
                limit: self.limit,
                remaining: self.free,
                reset_in_ms: self.reset_ms - now_ms,
            },
        })
    }

    fn is_over(&self, now_ms: i64) -> bool {
        now_ms >= self.believed_until_ms
    }
}

impl Book {
    /// Spends `cost` of the lease, or knows that there are no points; else the database has to be asked.
    fn charge(&mut self, now_ms: i64, limit: u32, cost: u32) -> Option<Result<Standing, ApiError>> {
        let cost = cost.min(self.lower(limit));
        let lease = self.lease.as_mut();
        if lease.is_some_and(|lease| lease.spend(now_ms, cost)) {
            return Some(Ok(self.standing(now_ms)));
        }
        let refused = self.refusal.as_ref()?.refuse(now_ms, cost);
        refused.map(Err)
    }

    /// The lower of the key's limit and its account's: what costs more than all points takes all of them.
    fn lower(&self, limit: u32) -> u32 {
        limit.min(self.account_limit.unwrap_or(limit))
    }

    fn standing(&self, now_ms: i64) -> Standing {
        let left = self.lease.as_ref().map_or(0, Lease::left);
        Standing {
            limit: self.limit,
            remaining: self.free.saturating_add(left).min(self.limit),
            reset_in_ms: self.reset_ms - now_ms,
        }
    }

    /// The next lease to request, and the report on the one that ends with it.
    fn next(&mut self, now_ms: i64, limit: u32, cost: u32) -> (Wanted, Option<Settlement>) {
        let largest = (self.lower(limit) / LARGEST_SHARE).max(1);
        let cost = cost.min(self.lower(limit));
        let settled = self.settle(now_ms);
        self.appetite = self.appetite.clamp((largest / FIRST_SHARE).max(1), largest);
        let wanted = Wanted {
            id: rand::random(),
            least: cost,
            most: self.appetite.max(cost),
        };
        (wanted, settled)
    }

    /// Ends the lease. One that did not last makes the next one larger.
    fn settle(&mut self, now_ms: i64) -> Option<Settlement> {
        let lease = self.lease.take()?;
        self.appetite = if lease.is_over(now_ms) {
            lease.spent()
        } else {
            self.appetite.saturating_mul(2)
        };
        Some(lease.settle())
    }

    /// Returns the refusal, if it is one.
    fn note(
        &mut self,
        wanted: &Wanted,
        asked_ms: i64,
        now_ms: i64,
        answer: &SharedGrant,
    ) -> Option<Refusal> {
        let grant = &answer.grant;
        self.account_limit = Some(answer.account_limit);
        self.limit = answer.limit;
        self.free = grant.free;
        self.reset_ms = now_ms + grant.reset_in_ms;
        if grant.points > 0 {
            self.lease = Some(Lease::new(wanted.id, asked_ms, grant));
            self.refusal = None;
        } else {
            self.refusal = Some(Refusal {
                cost: wanted.least.min(answer.account_limit),
                believed_until_ms: now_ms + grant.retry_in_ms.min(REFUSED_FOR_MS),
                retry_ms: now_ms + grant.retry_in_ms,
                limit: self.limit,
                free: self.free,
                reset_ms: self.reset_ms,
            });
        }
        self.refusal
    }

    fn is_idle(&self, now_ms: i64) -> bool {
        let refusal = self.refusal.as_ref();
        self.lease.is_none() && refusal.is_none_or(|refusal| refusal.is_over(now_ms))
    }
}

impl Key {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what [`Book::charge`] does, and knows what the account's ledger refused to another key.
    fn charge(&self, meter: &Meter, cost: u32) -> Option<Result<Standing, ApiError>> {
        let now_ms = meter.now_ms();
        let mut book = self.book();
        let charged = book.charge(now_ms, meter.limits.key, cost);
        let cost = cost.min(book.lower(meter.limits.key));
        charged.or_else(|| {
            let refusal = *self.account.refusal();
            refusal?.refuse(now_ms, cost).map(Err)
        })
    }
}

impl Account {
    fn refusal(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter {
    /// Points in a minute; the account's is the default.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The lower limit of the key and its account, as far as this replica knows.
    pub(crate) fn limit_of(&self, key: Id) -> u32 {
        let key = self.known().keys.get(&key).map(Arc::clone);
        key.map_or(self.limits.key, |key| key.book().lower(self.limits.key))
    }

    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            begin: Instant::now(),
            known: Mutex::default(),
        }
    }

    /// Spends `cost` points of the key and its account.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] when one of them has none left, and others when the database cannot be asked.
    pub(crate) async fn charge(
        state: &Arc<AppState>,
        payer: Payer,
        cost: u32,
    ) -> Result<Standing, ApiError> {
        let meter = &state.rates;
        let key = meter.key(payer);
        if let Some(charged) = key.charge(meter, cost) {
            return charged;
        }
        let gate = Arc::clone(&key.account.gate).lock_owned().await;
        // The previous holder of the gate may have brought enough.
        if let Some(charged) = key.charge(meter, cost) {
            return charged;
        }
        // Goes on when the client leaves: others wait for the same points.
        let state = Arc::clone(state);
        let asking = async move {
            let _gate = gate;
            let meter = &state.rates;
            let limit = meter.limits.key;
            let (wanted, settled) = key.book().next(meter.now_ms(), limit, cost);
            let asked_ms = meter.now_ms();
            let answer = {
                let mut conn = state.connection().await?;
                let (settled, wanted) = (settled.as_ref(), Some(&wanted));
                store::rates::lease(&mut conn, payer, meter.limits, settled, wanted).await?
            };
            let mut book = key.book();
            let now_ms = meter.now_ms();
            if let Some(answer) = answer {
                let refusal = book.note(&wanted, asked_ms, now_ms, &answer);
                *key.account.refusal() = refusal.filter(|_| answer.is_refused_by_account);
            }
            // The answer may have raised the limit after `next` had lowered the cost to it.
            let cost = cost.min(wanted.least);
            book.charge(now_ms, limit, cost).unwrap_or_else(|| {
                let cause = anyhow::anyhow!("the database took longer than a lease lasts");
                Err(ApiError::Unavailable(cause))
            })
        };
        finished(asking).await
    }

    /// Gives back what is left of leases: of those that are over, or of `all`. Forgets idle keys.
    pub(crate) async fn settle(state: &AppState, all: bool) -> Result<(), ApiError> {
        let meter = &state.rates;
        for key in meter.forget_idle() {
            let gate = Arc::clone(&key.account.gate);
            let _gate = if all {
                gate.lock_owned().await
            } else {
                let Ok(gate) = gate.try_lock_owned() else {
                    continue;
                };
                gate
            };
            let now_ms = meter.now_ms();
            let settled = {
                let mut book = key.book();
                let over = book
                    .lease
                    .as_ref()
                    .is_some_and(|lease| all || lease.is_over(now_ms));
                if over { book.settle(now_ms) } else { None }
            };
            let Some(settled) = settled else { continue };
            let mut conn = state.connection().await?;
            let settled = Some(&settled);
            store::rates::lease(&mut conn, key.payer, meter.limits, settled, None).await?;
        }
        Ok(())
    }

    fn key(&self, payer: Payer) -> Arc<Key> {
        let mut known = self.known();
        let Known { keys, accounts } = &mut *known;
        let key = keys.entry(payer.key).or_insert_with(|| {
            Arc::new(Key {
                payer,
                account: Arc::clone(accounts.entry(payer.account).or_default()),
                book: Mutex::default(),
            })
        });
        Arc::clone(key)
    }

    /// The keys that remain.
    fn forget_idle(&self) -> Vec<Arc<Key>> {
        let now_ms = self.now_ms();
        let mut known = self.known();
        // With one owner, which is the map, no one else is about to use it.
        known
            .keys
            .retain(|_, key| Arc::strong_count(key) > 1 || !key.book().is_idle(now_ms));
        known
            .accounts
            .retain(|_, account| Arc::strong_count(account) > 1);
        known.keys.values().map(Arc::clone).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

/// Runs to its end even if the waiting request is dropped.
async fn finished<T: Send + 'static>(
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::spawn(work)
        .await
        .unwrap_or_else(|error| Err(ApiError::Internal(error.into())))
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method;

    use super::{cost, seconds};

    #[test]
    fn operations_cost_what_they_take() {
        for (method, path, points) in [
            (Method::GET, "/v1/namespaces", 1),
            (Method::HEAD, "/v1/namespaces/x", 1),
            (Method::GET, "/v1/namespaces/x/connections/y:test", 1),
            (Method::POST, "/v1/namespaces", 5),
            (Method::PATCH, "/v1/namespaces/x", 5),
            (Method::DELETE, "/v1/namespaces/x", 5),
            (Method::POST, "/v1/namespaces/x/managers/y:apply", 5),
            (Method::POST, "/v1/namespaces/x/managers/y:preview", 20),
            (Method::POST, "/v1/namespaces/x/connections/y:test", 20),
            (Method::POST, "/v1/namespaces/x/connections/y:replay", 20),
        ] {
            assert_eq!(cost(&method, path), points, "{method} {path}");
        }
    }

    #[test]
    fn begun_seconds_count() {
        for (millis, expected) in [(-5, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2)] {
            assert_eq!(seconds(millis), expected, "{millis}");
        }
    }
}
