//! Limits the bytes of responses that are read from the database but not yet written to their clients, and those of
//! requests that are not yet whole.
//!
//! A client that reads slowly, or not at all, keeps its response in memory. Each account has a share of the bytes,
//! and all accounts together have a limit. Lists reserve the size of a page before they read it, and return what it
//! does not need. A refusal says whether clients do not read, or reads have no answer yet.
//!
//! The response to a change is sent in any case, so it counts beyond the limits, and so does what exceeds a
//! reservation. Returned bytes pay for this first: until then, reads wait. An account that has too many unread bytes
//! makes no further change ([`InFlight::check_unread`]), and a response that was read without a reservation is
//! dropped. So the account exceeds its share at most by the responses to the changes and tools that pass this check
//! before those of the others count. At the same time, these are as many as its database connections and the tools of an
//! account, and those changes of Connections whose responses wait for a connection to record that they contain secrets:
//! for [`PATIENCE`], as many as its points pay for.
//!
//! Responses of up to [`CHUNK_BYTES`] do not count in HTTP/1.1: the HTTP library copies them into its buffers at once.
//! In HTTP/2, a hundred of them may wait on each connection, so only those of up to [`SMALL_BYTES`] do not count. The
//! same holds for bodies of requests.

use std::{
    collections::{HashMap, hash_map::Entry},
    convert::Infallible,
    future::pending,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use actix_web::{
    body::{BodySize, BoxBody, MessageBody},
    http::Version,
    web::Bytes,
};
use domain::Id;
use futures::FutureExt as _;
use store::MAX_PAGE_BYTES;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::coop::unconstrained,
    time::timeout,
};

use crate::{
    ApiError,
    shares::{PATIENCE, Shares},
};

/// Maximum bytes of one account.
const ACCOUNT_BYTES: usize = 4 * MAX_PAGE_BYTES;
/// Maximum bytes of all accounts. A process needs about twice as much memory for them, because JSON is written into a
/// buffer that grows by doubling.
const PROCESS_BYTES: usize = 16 * MAX_PAGE_BYTES;
/// Maximum size of the body of a request.
pub(crate) const MAX_BODY_BYTES: usize = 256 * 1024;
/// Maximum bytes of the bodies of requests of one account, and of all.
const ACCOUNT_BODY_BYTES: usize = 16 * MAX_BODY_BYTES;
const PROCESS_BODY_BYTES: usize = 64 * MAX_BODY_BYTES;
/// Size of the pieces that a body is written in.
pub(crate) const CHUNK_BYTES: usize = 32 * 1024;
/// Maximum size of a response or a body that does not count in HTTP/2.
const SMALL_BYTES: usize = 1_024;

pub(crate) struct InFlight {
    accounts: Arc<Shares>,
    process: Arc<Semaphore>,
    account_bytes: usize,
    process_bytes: usize,
    unread: Arc<Unread>,
}

/// Bytes that count as in flight until this is dropped.
pub(crate) struct Reserved {
    of_account: OwnedSemaphorePermit,
    of_process: OwnedSemaphorePermit,
}

/// Permits that are held until this is dropped. Those that were not free are the next to be taken.
type Owed = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Bytes of responses that clients have yet to read.
#[derive(Default)]
struct Unread(Mutex<UnreadBytes>);

#[derive(Default)]
struct UnreadBytes {
    accounts: HashMap<Id, usize>,
    /// Sum over all accounts.
    total: usize,
}

impl InFlight {
    pub(crate) fn of_responses() -> Self {
        Self::new(ACCOUNT_BYTES, PROCESS_BYTES)
    }

    pub(crate) fn of_bodies() -> Self {
        Self::new(ACCOUNT_BODY_BYTES, PROCESS_BODY_BYTES)
    }

    fn new(account_bytes: usize, process_bytes: usize) -> Self {
        Self {
            accounts: Arc::new(Shares::each(account_bytes)),
            process: Arc::new(Semaphore::new(process_bytes)),
            account_bytes,
            process_bytes,
            unread: Arc::default(),
        }
    }

    /// Waits until `account` may have so many bytes. More than the share of an account takes the whole share.
    pub(crate) async fn reserve(&self, account: Id, bytes: usize) -> Result<Reserved, ApiError> {
        let count = u32::try_from(bytes.min(self.account_bytes)).unwrap_or(u32::MAX);
        let of_account = self.accounts.take_many(account, count).await;
        let of_account = of_account.map_err(|error| match error {
            ApiError::TooManyAtOnce => self.refusal(account, count as usize),
            other => other,
        })?;
        let process = Arc::clone(&self.process).acquire_many_owned(count);
        match timeout(PATIENCE, process).await {
            Ok(of_process) => Ok(Reserved {
                of_account,
                of_process: of_process.map_err(|error| ApiError::Internal(error.into()))?,
            }),
            Err(_) => Err(too_many_bytes()),
        }
    }

    /// Returns why `account` may not have so many bytes.
    fn refusal(&self, account: Id, bytes: usize) -> ApiError {
        match self.unread.lock().of(account) + bytes > self.account_bytes {
            true => ApiError::TooManyBytes,
            false => ApiError::TooManyReads,
        }
    }

    /// Refuses a request of an account whose clients must first read the responses that they have: because these use up
    /// its share or, if it has any, because those of all accounts use up the limit. Reservations do not matter. Call it
    /// directly before a change. It does not wait.
    pub(crate) fn check_unread(&self, account: Id) -> Result<(), ApiError> {
        let unread = self.unread.lock();
        match unread.of(account) {
            0 => Ok(()),
            bytes if bytes >= self.account_bytes => Err(ApiError::TooManyBytes),
            _ if unread.total >= self.process_bytes => Err(too_many_bytes()),
            _ => Ok(()),
        }
    }

    /// Counts so many bytes of a response, first by what is `reserved` and then beyond the limits.
    pub(crate) fn count(
        &self,
        account: Id,
        mut reserved: Option<Reserved>,
        bytes: usize,
    ) -> Arc<Counted> {
        let mut excess = bytes;
        if let Some(reserved) = &mut reserved {
            reserved.keep(bytes);
            excess -= reserved.of_account.num_permits();
        }
        self.unread.lock().add(account, bytes);
        Arc::new(Counted {
            account,
            bytes,
            unread: Arc::clone(&self.unread),
            _reserved: reserved,
            _owed: (excess > 0).then(|| self.owe(account, excess)),
        })
    }

    /// Takes so many bytes of `account`, at most its share.
    fn owe(&self, account: Id, bytes: usize) -> [Owed; 2] {
        let count = u32::try_from(bytes.min(self.account_bytes)).unwrap_or(u32::MAX);
        let (accounts, process) = (Arc::clone(&self.accounts), Arc::clone(&self.process));
        let mut owed: [Owed; 2] = [
            Box::pin(unconstrained(async move {
                let _permits = accounts.wait_for(account, count).await;
                pending::<()>().await
            })),
            Box::pin(unconstrained(async move {
                let _permits = process.acquire_many_owned(count).await;
                pending::<()>().await
            })),
        ];
        for one in &mut owed {
            // Takes the permits or, as semaphores are fair, a place before all later requests. Nothing polls it again.
            let _ = one.as_mut().now_or_never();
        }
        owed
    }
}

fn too_many_bytes() -> ApiError {
    ApiError::Unavailable(anyhow::anyhow!(
        "too many bytes of requests or responses wait for clients"
    ))
}

impl Unread {
    fn lock(&self) -> MutexGuard<'_, UnreadBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnreadBytes {
    fn of(&self, account: Id) -> usize {
        self.accounts.get(&account).copied().unwrap_or(0)
    }

    fn add(&mut self, account: Id, bytes: usize) {
        *self.accounts.entry(account).or_default() += bytes;
        self.total += bytes;
    }

    fn remove(&mut self, account: Id, bytes: usize) {
        if let Entry::Occupied(mut left) = self.accounts.entry(account) {
            *left.get_mut() -= bytes;
            if *left.get() == 0 {
                left.remove();
            }
        }
        self.total -= bytes;
    }
}

impl Reserved {
    /// Gives back what exceeds so many bytes.
    pub(crate) fn keep(&mut self, bytes: usize) {
        for permit in [&mut self.of_account, &mut self.of_process] {
            drop(permit.split(permit.num_permits().saturating_sub(bytes)));
        }
    }
}

/// Returns the maximum size of a response or a body that does not count.
pub(crate) fn uncounted_bytes(version: Version) -> usize {
    match version {
        Version::HTTP_2 => SMALL_BYTES,
        _ => CHUNK_BYTES,
    }
}

/// Returns the number of bytes of a response that counts.
pub(crate) fn counted(size: BodySize, version: Version) -> Option<usize> {
    match size {
        BodySize::Sized(bytes) => usize::try_from(bytes).ok(),
        BodySize::None | BodySize::Stream => None,
    }
    .filter(|bytes| *bytes > uncounted_bytes(version))
}

/// Returns `body` in pieces, which is `counted` until it is written or dropped.
pub(crate) fn in_pieces(body: BoxBody, counted: Arc<Counted>) -> BoxBody {
    match body.try_into_bytes() {
        Ok(rest) => BoxBody::new(CountedBody {
            rest,
            _counted: counted,
        }),
        // A stream, which is in pieces already.
        Err(body) => body,
    }
}

/// A body in pieces. The HTTP library copies a piece into its own buffer, and asks for the next when that is nearly
/// written.
struct CountedBody {
    rest: Bytes,
    _counted: Arc<Counted>,
}

/// Bytes of a response that count until this is dropped. HTTP/2, which may keep pieces after the body has ended, finds
/// it in the response's extensions.
pub(crate) struct Counted {
    account: Id,
    bytes: usize,
    unread: Arc<Unread>,
    _reserved: Option<Reserved>,
    _owed: Option<[Owed; 2]>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.unread.lock().remove(self.account, self.bytes);
    }
}

impl MessageBody for CountedBody {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.rest.len() as u64)
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Infallible>>> {
        let length = self.rest.len().min(CHUNK_BYTES);
        Poll::Ready((length > 0).then(|| Ok(self.rest.split_to(length))))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{
        body::{BodySize, BoxBody, MessageBody as _, to_bytes},
        http::Version,
    };
    use domain::Id;
    use store::MAX_PAGE_BYTES;

    use super::{
        ACCOUNT_BYTES, CHUNK_BYTES, InFlight, PROCESS_BYTES, SMALL_BYTES, counted, in_pieces,
    };
    use crate::ApiError;

    #[tokio::test(start_paused = true)]
    async fn account_reads_again_when_a_response_is_written() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let mut bodies = Vec::new();
        for _ in 0..ACCOUNT_BYTES / MAX_PAGE_BYTES {
            let reserved = in_flight.reserve(account, MAX_PAGE_BYTES).await.unwrap();
            let counted = in_flight.count(account, Some(reserved), MAX_PAGE_BYTES);
            let body = BoxBody::new(vec![b'x'; MAX_PAGE_BYTES]);
            bodies.push(in_pieces(body, counted));
        }
        let refused = in_flight.reserve(account, MAX_PAGE_BYTES).await;
        assert!(matches!(refused, Err(ApiError::TooManyBytes)));
        let other = in_flight.reserve(Id::generate(), MAX_PAGE_BYTES).await;
        assert!(other.is_ok());

        let body = bodies.pop().unwrap();
        assert_eq!(body.size(), BodySize::Sized(MAX_PAGE_BYTES as u64));
        assert_eq!(to_bytes(body).await.unwrap().len(), MAX_PAGE_BYTES);
        assert!(in_flight.reserve(account, MAX_PAGE_BYTES).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn refusal_names_reads_without_an_answer_until_clients_alone_use_up_the_share() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let mut reads = Vec::new();
        for _ in 0..ACCOUNT_BYTES / MAX_PAGE_BYTES {
            reads.push(in_flight.reserve(account, MAX_PAGE_BYTES).await.unwrap());
        }
        let mut bodies = Vec::new();
        for read in reads {
            let refused = in_flight.reserve(account, MAX_PAGE_BYTES).await;
            assert!(matches!(refused, Err(ApiError::TooManyReads)));
            bodies.push(in_flight.count(account, Some(read), MAX_PAGE_BYTES));
        }
        let refused = in_flight.reserve(account, MAX_PAGE_BYTES).await;
        assert!(matches!(refused, Err(ApiError::TooManyBytes)));

        drop(bodies);
        let _read = in_flight.reserve(account, ACCOUNT_BYTES).await.unwrap();
        let refused = in_flight.reserve(account, 1).await;
        assert!(matches!(refused, Err(ApiError::TooManyReads)));
    }

    #[tokio::test(start_paused = true)]
    async fn unused_part_of_a_reservation_is_returned() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let reserved = in_flight.reserve(account, ACCOUNT_BYTES).await.unwrap();
        let _body = in_flight.count(account, Some(reserved), 5);
        let rest = in_flight.reserve(account, ACCOUNT_BYTES - 5).await;
        assert!(rest.is_ok());
        assert!(in_flight.reserve(account, 1).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn response_to_a_change_counts_beyond_the_share_until_it_is_read() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        assert!(in_flight.check_unread(account).is_ok());
        let first = in_flight.count(account, None, ACCOUNT_BYTES - 1);
        assert!(in_flight.check_unread(account).is_ok());
        let second = in_flight.count(account, None, 2);
        let refused = in_flight.check_unread(account);
        assert!(matches!(refused, Err(ApiError::TooManyBytes)));
        let refused = in_flight.reserve(account, 1).await;
        assert!(matches!(refused, Err(ApiError::TooManyBytes)));
        let other = Id::generate();
        assert!(in_flight.check_unread(other).is_ok());
        assert!(in_flight.reserve(other, ACCOUNT_BYTES).await.is_ok());

        // What is returned pays for the excess.
        drop(first);
        assert!(in_flight.check_unread(account).is_ok());
        assert!(in_flight.reserve(account, ACCOUNT_BYTES - 1).await.is_err());
        assert!(in_flight.reserve(account, ACCOUNT_BYTES - 2).await.is_ok());
        drop(second);
        assert!(in_flight.reserve(account, ACCOUNT_BYTES).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn body_counts_beyond_its_reservation() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let reserved = in_flight.reserve(account, MAX_PAGE_BYTES).await.unwrap();
        let body = in_flight.count(account, Some(reserved), 3 * MAX_PAGE_BYTES);
        let rest = ACCOUNT_BYTES - 3 * MAX_PAGE_BYTES;
        assert!(in_flight.reserve(account, rest + 1).await.is_err());
        assert!(in_flight.reserve(account, rest).await.is_ok());
        drop(body);
        assert!(in_flight.reserve(account, ACCOUNT_BYTES).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn only_accounts_with_unread_responses_make_no_change_when_memory_is_used_up() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let _unread = in_flight.count(account, None, 1);
        let mut held = Vec::new();
        for _ in 0..PROCESS_BYTES / ACCOUNT_BYTES {
            held.push(in_flight.count(Id::generate(), None, ACCOUNT_BYTES));
        }
        let refused = in_flight.check_unread(account);
        assert!(matches!(refused, Err(ApiError::Unavailable(_))));
        assert!(in_flight.check_unread(Id::generate()).is_ok());
        held.pop();
        assert!(in_flight.check_unread(account).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn reads_without_an_answer_refuse_no_change() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let mut reads = vec![in_flight.reserve(account, ACCOUNT_BYTES).await];
        for _ in 1..PROCESS_BYTES / ACCOUNT_BYTES {
            reads.push(in_flight.reserve(Id::generate(), ACCOUNT_BYTES).await);
        }
        assert!(reads.iter().all(Result::is_ok));
        let _unread = in_flight.count(account, None, 1);
        assert!(in_flight.check_unread(account).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn all_accounts_together_have_a_limit() {
        let in_flight = InFlight::of_responses();
        let mut held = Vec::new();
        for _ in 0..PROCESS_BYTES / ACCOUNT_BYTES {
            // Takes the whole share, because it exceeds it.
            held.push(in_flight.reserve(Id::generate(), 2 * ACCOUNT_BYTES).await);
        }
        assert!(held.iter().all(Result::is_ok));
        let refused = in_flight.reserve(Id::generate(), 1).await;
        assert!(matches!(refused, Err(ApiError::Unavailable(_))));
        held.pop();
        assert!(in_flight.reserve(Id::generate(), 1).await.is_ok());
    }

    #[test]
    fn short_responses_and_streams_do_not_count() {
        for (version, free) in [
            (Version::HTTP_11, CHUNK_BYTES),
            (Version::HTTP_2, SMALL_BYTES),
        ] {
            let sized = |bytes: usize| counted(BodySize::Sized(bytes as u64), version);
            assert_eq!(sized(free), None);
            assert_eq!(sized(free + 1), Some(free + 1));
            assert_eq!(counted(BodySize::Stream, version), None);
        }
    }
}
