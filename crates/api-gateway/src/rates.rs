//! Rate limit: points that a key, and all keys of an account, may spend in a minute, over all replicas.
//!
//! Points are leased from the database in portions. `store::rates` has the rules, and the proof that no window of a
//! minute exceeds the limit. This module is the replica's side. Each key has one lease. When it needs another, one
//! request asks for it while the key's other requests wait. A key that spends its leases gets larger ones. A lease
//! is settled when it ends, when more is needed, and at shutdown. It takes its points from both the key and its
//! account, or from neither. Each account has one lease request at a time on each replica, regardless of its number
//! of keys: its ledger is one row, and database connections are few.
//!
//! Cost: a lock and a look-up for a request that finds points. A new lease costs one short transaction, which
//! affects 3 % of the requests at best and, at worst, one request every five seconds for a key that makes few. A
//! key or account that is refused asks the database at most four times a second, regardless of how many requests it
//! makes.
//!
//! Without the database, requests get 503 once the leases are spent. They would need the database anyway, and so
//! the limit always holds.

mod lease;
mod pace;
#[cfg(test)]
mod simulation;
pub(crate) mod standing;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::http::Method;
use domain::Id;
use store::rates::{LEASE_MS, Limits, Payer, Settlement, SharedGrant, Wanted};
use tokio::sync::Mutex as Gate;

use crate::{ApiError, authenticate::guesses::BURST, database::Database};
use lease::Lease;
use pace::Pace;
use standing::{Standing, seconds};

/// How long a refusal is cached at most, because others may return points.
const REFUSED_FOR_MS: i64 = 250;
/// The largest lease is this part of the limit.
const LARGEST_SHARE: u32 = 20;
/// Size of a response that one point pays for.
const BYTES_PER_POINT: usize = 100_000;
/// The first lease of a key is this part of the largest.
const FIRST_SHARE: u32 = 4;

runtime::metrics! {
    static LIMITED: IntCounter = "earshot_rate_limited_total",
        "Requests that were refused for the rate of their key or its account.";
}

/// Returns the cost of a request in points.
pub(crate) fn cost(method: &Method, path: &str) -> u32 {
    const COSTLY: [&str; 4] = [":test", ":preview", ":replay", ":backfill"];
    // The requests that a tool makes to the API are charged besides.
    if is_safe(method) || path == "/mcp" {
        1
    } else if COSTLY.iter().any(|verb| path.ends_with(verb)) {
        20
    } else {
        5
    }
}

/// Returns true for a request that changes nothing, so that its response can still be refused.
pub(crate) fn is_read(method: &Method, path: &str) -> bool {
    is_safe(method) || path.ends_with(":preview")
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Returns the cost of a response of this size in points, in addition to the cost of its request, which pays for a
/// small one.
pub(crate) fn cost_of_response(bytes: usize) -> u32 {
    u32::try_from(bytes.saturating_sub(1) / BYTES_PER_POINT).unwrap_or(u32::MAX)
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

/// Rate limits of all keys and accounts, on this replica.
pub(crate) struct RateLimiter {
    /// Limits of each key, and of an account for which none is set.
    limits: Limits,
    begin: Instant,
    known: Mutex<Known>,
}

/// Keys and accounts with leases or cached refusals.
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
    pace: Mutex<Pace>,
}

/// State of a key on this replica.
#[derive(Default)]
struct Book {
    lease: Option<Lease>,
    refusal: Option<Refusal>,
    /// Number of points to ask for next; 0 before the first request.
    appetite: u32,
    /// Limit of the account, if known.
    account_limit: Option<u32>,
    /// State of the ledger with fewer points left, at the database's last answer: limit, free points and reset.
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
    /// Returns an error if `cost` is known to exceed the remaining points.
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
    /// Spends `cost` from the lease, or refuses. Returns `None` if the database must be asked.
    fn charge(&mut self, now_ms: i64, limit: u32, cost: u32) -> Option<Result<Standing, ApiError>> {
        let cost = cost.min(self.lower(limit));
        let lease = self.lease.as_mut();
        if lease.is_some_and(|lease| lease.spend(now_ms, cost)) {
            return Some(Ok(self.standing(now_ms)));
        }
        let refused = self.refusal.as_ref()?.refuse(now_ms, cost);
        refused.map(Err)
    }

    /// Returns the lower of the key's and the account's limit. A request that costs more than the limit spends the
    /// whole limit.
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

    /// Returns the next lease to request, and the settlement of the previous one.
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

    /// Ends the lease. If it was used up early, the next one is larger.
    fn settle(&mut self, now_ms: i64) -> Option<Settlement> {
        let lease = self.lease.take()?;
        self.appetite = if lease.is_over(now_ms) {
            lease.spent()
        } else {
            self.appetite.saturating_mul(2)
        };
        Some(lease.settle())
    }

    /// Stores the answer of the database, and returns the refusal if it is one.
    fn record(
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

    /// Same as [`Book::charge`], but also uses what the account's ledger refused to other keys.
    fn charge(&self, limiter: &RateLimiter, cost: u32) -> Option<Result<Standing, ApiError>> {
        let now_ms = limiter.now_ms();
        let mut book = self.book();
        let charged = book.charge(now_ms, limiter.limits.key, cost);
        let cost = cost.min(book.lower(limiter.limits.key));
        charged.or_else(|| {
            let refusal = *self.account.refusal();
            refusal?.refuse(now_ms, cost).map(Err)
        })
    }
}

impl Account {
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RateLimiter {
    /// Returns the limits in points per minute of a key and, by default, of an account.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns the lower limit of the key and its account, as far as this replica knows.
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

    /// Spends `cost` points of the key and its account, and waits while the account spends faster than it may.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] if one of them has no points left or too many requests of the account wait already, and
    /// others if the database cannot be asked.
    pub(crate) async fn charge(
        self: &Arc<Self>,
        database: &Arc<Database>,
        payer: Payer,
        cost: u32,
    ) -> Result<Standing, ApiError> {
        let key = self.key(payer);
        if key.account.pace().is_full(Instant::now()) {
            return Err(self.too_fast(&key));
        }
        // A lease that takes longer is over before it can be used.
        let longest = Duration::from_millis(LEASE_MS.unsigned_abs());
        let spending = self.spend(database, payer, &key, cost);
        let standing = tokio::time::timeout(longest, spending)
            .await
            .unwrap_or_else(|_| Err(too_slow()))?;
        let limit = key.book().account_limit;
        let limit = limit.unwrap_or(self.limits.account);
        let wait = key.account.pace().spend(Instant::now(), cost, limit);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        Ok(standing)
    }

    /// Returns the refusal of a request because too many requests of the account already wait.
    fn too_fast(&self, key: &Key) -> ApiError {
        LIMITED.inc();
        let mut standing = key.book().standing(self.now_ms());
        if standing.limit == 0 {
            // The key has no lease on this replica yet.
            standing.limit = self.limits.key;
        }
        ApiError::RateLimited {
            retry_after: 1,
            standing,
        }
    }

    async fn spend(
        self: &Arc<Self>,
        database: &Arc<Database>,
        payer: Payer,
        key: &Arc<Key>,
        cost: u32,
    ) -> Result<Standing, ApiError> {
        if let Some(charged) = key.charge(self, cost) {
            return charged;
        }
        let gate = Arc::clone(&key.account.gate).lock_owned().await;
        // The previous holder of the lock may have leased enough points.
        if let Some(charged) = key.charge(self, cost) {
            return charged;
        }
        // Continues even if the client leaves, because other requests wait for the same points.
        let (limiter, database, key) = (Arc::clone(self), Arc::clone(database), Arc::clone(key));
        let asking = async move {
            let _gate = gate;
            let limit = limiter.limits.key;
            let (wanted, settled) = key.book().next(limiter.now_ms(), limit, cost);
            let asked_ms = limiter.now_ms();
            let answer = {
                let mut conn = database.connection().await?;
                let (settled, wanted) = (settled.as_ref(), Some(&wanted));
                store::rates::lease(&mut conn, payer, limiter.limits, settled, wanted).await?
            };
            let mut book = key.book();
            let now_ms = limiter.now_ms();
            if let Some(answer) = answer {
                let refusal = book.record(&wanted, asked_ms, now_ms, &answer);
                *key.account.refusal() = refusal.filter(|_| answer.is_refused_by_account);
            }
            // The answer may have raised the limit after `next` had lowered the cost to it.
            let cost = cost.min(wanted.least);
            book.charge(now_ms, limit, cost)
                .unwrap_or_else(|| Err(too_slow()))
        };
        finished(asking).await
    }

    /// Returns the unused points of expired leases, or of `all` leases. Forgets idle keys.
    pub(crate) async fn settle(&self, database: &Database, all: bool) -> Result<(), ApiError> {
        for key in self.forget_idle() {
            let gate = Arc::clone(&key.account.gate);
            let _gate = if all {
                gate.lock_owned().await
            } else {
                let Ok(gate) = gate.try_lock_owned() else {
                    continue;
                };
                gate
            };
            let now_ms = self.now_ms();
            let settled = {
                let mut book = key.book();
                let over = book
                    .lease
                    .as_ref()
                    .is_some_and(|lease| all || lease.is_over(now_ms));
                if over { book.settle(now_ms) } else { None }
            };
            let Some(settled) = settled else { continue };
            let mut conn = database.connection().await?;
            let settled = Some(&settled);
            store::rates::lease(&mut conn, key.payer, self.limits, settled, None).await?;
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

    /// Removes idle keys and returns the others.
    fn forget_idle(&self) -> Vec<Arc<Key>> {
        let now_ms = self.now_ms();
        let mut known = self.known();
        // If the map is the only owner, no request is about to use it.
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

fn too_slow() -> ApiError {
    ApiError::Unavailable(anyhow::anyhow!(
        "the database took longer than a lease lasts"
    ))
}

/// Runs the future to its end, even if the waiting request is dropped.
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

    use super::{cost, cost_of_response, seconds};

    #[test]
    fn costs_follow_the_work_of_an_operation() {
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
            (Method::POST, "/mcp", 1),
        ] {
            assert_eq!(cost(&method, path), points, "{method} {path}");
        }
    }

    #[test]
    fn response_costs_a_point_for_each_hundred_kilobytes_after_the_first() {
        for (bytes, points) in [
            (0, 0),
            (100_000, 0),
            (100_001, 1),
            (200_000, 1),
            (4_000_000, 39),
        ] {
            assert_eq!(cost_of_response(bytes), points, "{bytes}");
        }
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (millis, expected) in [(-5, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2)] {
            assert_eq!(seconds(millis), expected, "{millis}");
        }
    }
}
