//! Errors of reading and writing rows.

use std::fmt;

use diesel::result::DatabaseErrorKind::{
    CheckViolation, ClosedConnection, ExclusionViolation, ForeignKeyViolation, NotNullViolation,
    ReadOnlyTransaction, RestrictViolation, SerializationFailure, UnableToSendCommand,
    UniqueViolation, Unknown,
};

use domain::Id;

use crate::{
    QueryError,
    seal::OpenError,
    sqlstate::{self, Code},
};

/// Name of the quota of bytes of instructions and mutes.
pub(crate) const CONTENT: &str = "contentBytes";

/// Name of the daily limit of feeds that an account has not watched before.
pub(crate) const NEW_FEEDS: &str = "newFeeds";
/// Name of the daily limit of stored responses: the header that asks to store them.
pub(crate) const STORED_RESPONSES: &str = "Idempotency-Key";

/// Name of the limit of Connections of a Namespace that receive service events: their field.
pub(crate) const EVENTS: &str = "events";

/// A quota that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Name of the quota in `GET /v1/caller`, or of the field that exceeds a fixed one.
    pub quota: &'static str,
    pub limit: u32,
    /// Number that the account would have.
    pub wanted: u32,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            quota,
            limit,
            wanted,
        } = self;
        let what = match *quota {
            CONTENT => "bytes of instructions and mutes",
            NEW_FEEDS => "feeds that are new to it today (UTC)",
            STORED_RESPONSES => "bytes of stored responses today (UTC)",
            EVENTS => "Connections of this Namespace that receive service events",
            quota => quota,
        };
        write!(
            f,
            "the account would have {wanted} {what}, and its quota is {limit}"
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No connection to the database within the pool's time.
    #[error("no database connection")]
    Pool(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot open a sealed value")]
    Sealed(#[from] OpenError),
    /// A column holds what this version cannot read.
    #[error("unreadable value in the database")]
    Json(#[source] serde_json::Error),
    /// Other transactions created Scans of the same account meanwhile. If the transaction is repeated at once, it
    /// fits the quota.
    #[error("another transaction used up the account's quota of scans")]
    QuotaRace(Vec<Id>),
    /// Plans changed before each try to store what they match. Nothing was stored.
    #[error("plans changed before each try")]
    PlansChanged,
    /// The account would have more than its quota. The transaction must be rolled back.
    #[error("{0}")]
    QuotaExceeded(Exceeded),
}

impl Error {
    /// Returns true if the values may be the cause, and not the connection to the database.
    pub fn may_be_refusal(&self) -> bool {
        match self {
            Self::Pool(_) | Self::QuotaRace(_) | Self::PlansChanged | Self::QuotaExceeded(_) => {
                false
            }
            Self::Query(error) => !is_passing(error),
            Self::Sealed(_) | Self::Json(_) => true,
        }
    }

    /// Returns true if one value is a likely cause, not the connection, the schema or the server's resources.
    pub fn may_blame_values(&self) -> bool {
        let Self::Query(error) = self else {
            return matches!(self, Self::Json(_));
        };
        match error {
            QueryError::SerializationError(_) | QueryError::DeserializationError(_) => true,
            // diesel has no error kind for data exceptions and exceeded limits.
            QueryError::DatabaseError(Unknown, information) => {
                !is_passing(error) && sqlstate::of(&**information).is_none_or(blames_values)
            }
            _ => self.is_refusal(),
        }
    }

    /// Returns true if the values violate a constraint of the schema, so that a retry cannot succeed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Query(QueryError::DatabaseError(
                CheckViolation
                    | ExclusionViolation
                    | ForeignKeyViolation
                    | NotNullViolation
                    | RestrictViolation
                    | UniqueViolation,
                _
            ))
        )
    }
}

impl From<diesel_async::pooled_connection::deadpool::PoolError> for Error {
    /// Drops the pool's own wrapper text, which repeats the cause.
    fn from(error: diesel_async::pooled_connection::deadpool::PoolError) -> Self {
        use diesel_async::pooled_connection::PoolError as Cause;
        match error {
            deadpool::managed::PoolError::Backend(Cause::ConnectionError(cause)) => {
                Self::Pool(cause.to_string().into())
            }
            other => Self::Pool(Box::new(other)),
        }
    }
}

/// Returns true if something should be created in a Namespace that was deleted meanwhile.
pub fn lost_namespace(error: &QueryError) -> bool {
    match error {
        QueryError::DatabaseError(ForeignKeyViolation, information) => matches!(
            information.constraint_name(),
            Some("managers_namespace_fkey" | "connections_namespace_fkey")
        ),
        _ => false,
    }
}

/// Returns true if the same query may soon succeed: the connection was lost, the server is stopping, starting,
/// read-only after a failover or out of space, someone cancelled the query, or two transactions conflicted. Or an earlier
/// statement of the transaction failed, and its error was lost (25P02).
pub fn is_passing(error: &QueryError) -> bool {
    match error {
        QueryError::BrokenTransactionManager => true,
        QueryError::RollbackErrorOnCommit { commit_error, .. } => is_passing(commit_error),
        QueryError::DatabaseError(kind, information) => {
            matches!(
                kind,
                ClosedConnection | ReadOnlyTransaction | SerializationFailure | UnableToSendCommand
            ) || sqlstate::of(&**information).is_some_and(|code| {
                matches!(
                    &code,
                    b"25P02"
                        | b"40P01"
                        | b"53100"
                        | b"53300"
                        | b"57P01"
                        | b"57P02"
                        | b"57P03"
                        | b"57P05"
                ) || code.starts_with(b"08")
                    || code == CANCELLED && !is_cut_off(error)
            })
        }
        _ => false,
    }
}

/// A person, or a time limit, ended the statement.
const CANCELLED: Code = *b"57014";
/// A lock was not free in time.
pub(crate) const LOCK_NOT_AVAILABLE: Code = *b"55P03";

/// Returns true if a statement, or its wait for a lock, exceeded its time limit.
pub fn is_cut_off(error: &QueryError) -> bool {
    match error {
        QueryError::DatabaseError(_, information) => match sqlstate::of(&**information) {
            Some(LOCK_NOT_AVAILABLE) => true,
            // A request of a person has the same code, and only its English message is known. It is rare.
            Some(CANCELLED) => information.message() != "canceling statement due to user request",
            _ => false,
        },
        _ => false,
    }
}

/// Returns true if a lock was not free in time, or two transactions waited for each other.
pub(crate) fn is_lock_timeout(error: &QueryError) -> bool {
    match error {
        QueryError::DatabaseError(SerializationFailure, _) => true,
        QueryError::DatabaseError(_, information) => {
            let code = sqlstate::of(&**information);
            matches!(code, Some(LOCK_NOT_AVAILABLE)) || code == Some(*b"40P01")
        }
        _ => false,
    }
}

/// Classes of codes that name the connection, the statement, rights, the schema or the server, but no value.
fn blames_values(code: Code) -> bool {
    const OTHERS: [&[u8]; 13] = [
        b"08", b"0A", b"25", b"26", b"28", b"3D", b"3F", b"40", b"42", b"53", b"55", b"57", b"58",
    ];
    !OTHERS.iter().any(|class| code.starts_with(class))
}
