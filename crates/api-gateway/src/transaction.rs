//! The one place where transactions begin and end.

use domain::audit::Entry;
use events::AnyEvent;
use store::{AsyncConnection, AsyncPgConnection, QueryError};

use crate::{ApiError, authenticate::Caller};

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

/// Result of a transaction.
pub(crate) struct Outcome<T> {
    /// The response.
    pub(crate) answer: T,
    /// The entry in the audit log; `None` if nothing changed.
    entry: Option<Entry>,
    /// Events to publish after the commit.
    events: Vec<AnyEvent>,
}

impl<T> Outcome<T> {
    pub(crate) fn of(answer: T, entry: Option<Entry>) -> Self {
        Self {
            answer,
            entry,
            events: Vec::new(),
        }
    }

    /// Adds events, which are published after the commit.
    pub(crate) fn with_events<E: Into<AnyEvent>>(
        mut self,
        events: impl IntoIterator<Item = E>,
    ) -> Self {
        self.events.extend(events.into_iter().map(Into::into));
        self
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        Outcome {
            answer: change(self.answer),
            entry: self.entry,
            events: self.events,
        }
    }
}

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

impl Caller {
    /// Runs `work` in a transaction, which test mode rolls back with the same response. The transaction also writes
    /// the entry in the audit log. Its events are published directly after the commit.
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, ApiError>
    where
        T: Send,
        W: for<'c> Work<&'c mut AsyncPgConnection, Result<Outcome<T>, ApiError>, Future: Send>
            + Send,
    {
        let test_mode = self.test_mode;
        let mut conn = self.connection().await?;
        self.check_unread()?;
        let outcome = conn
            .transaction(async move |conn| {
                let Outcome {
                    answer,
                    entry,
                    events,
                } = work(conn).await.map_err(Ended::Failed)?;
                if let Some(entry) = entry {
                    self.record(conn, &entry).await?;
                }
                if test_mode {
                    Err(Ended::Tested(answer))
                } else {
                    Ok((answer, events))
                }
            })
            .await;
        match outcome {
            Ok((answer, events)) => {
                self.state.events.publish_all(events);
                Ok(answer)
            }
            Err(Ended::Tested(answer)) => Ok(answer),
            Err(Ended::Failed(error)) => Err(error),
        }
    }
}
