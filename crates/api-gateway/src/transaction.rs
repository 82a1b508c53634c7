//! The one place where transactions begin and end.

use domain::audit::Entry;
use store::{AsyncConnection, AsyncPgConnection, QueryError};

use crate::{ApiError, authenticate::Caller, state::AppState};

/// Work on a connection, with a future that may move between threads.
pub(crate) trait Work<C, R>: AsyncFnOnce(C) -> R + FnOnce(C) -> Self::Future {
    type Future: Future<Output = R>;
}

impl<W, C, R, F> Work<C, R> for W
where
    W: AsyncFnOnce(C) -> R + FnOnce(C) -> F,
    F: Future<Output = R>,
{
    type Future = F;
}

/// The response of a transaction, and its entry in the audit log; `None` if it changed nothing.
pub(crate) struct Outcome<T>(pub(crate) T, pub(crate) Option<Entry>);

/// Why a transaction was rolled back.
enum Ended<T> {
    /// The request was in test mode, and this is the response.
    Tested(T),
    Failed(ApiError),
}

impl<T> From<QueryError> for Ended<T> {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

impl AppState {
    /// Runs `work` in a transaction, which test mode rolls back with the same response. The transaction also writes
    /// the entry in the audit log. Events that it enqueued are published directly after the commit.
    pub(crate) async fn write<T, W>(&self, caller: &Caller, work: W) -> Result<T, ApiError>
    where
        T: Send,
        W: for<'c> Work<&'c mut AsyncPgConnection, Result<Outcome<T>, ApiError>, Future: Send>
            + Send,
    {
        let test_mode = caller.test_mode;
        let mut conn = self.database.connection_for(caller.key.account).await?;
        let outcome = conn
            .transaction(async move |conn| {
                let Outcome(answer, entry) = work(conn).await.map_err(Ended::Failed)?;
                if let Some(entry) = entry {
                    caller.record(conn, &entry).await?;
                }
                if test_mode {
                    Err(Ended::Tested(answer))
                } else {
                    Ok(answer)
                }
            })
            .await;
        match outcome {
            Ok(answer) => {
                self.outbox.wake();
                Ok(answer)
            }
            Err(Ended::Tested(answer)) => Ok(answer),
            Err(Ended::Failed(error)) => Err(error),
        }
    }
}
