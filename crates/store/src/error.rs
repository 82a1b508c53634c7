//! Errors between a value and its row.

use diesel::result::DatabaseErrorKind::{
    CheckViolation, ClosedConnection, ExclusionViolation, ForeignKeyViolation, NotNullViolation,
    RestrictViolation, SerializationFailure, UnableToSendCommand, UniqueViolation, Unknown,
};

use crate::{QueryError, seal::OpenError};

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
    /// Other transactions made Scans of the same account meanwhile. Repeated at once, the transaction fits its quota.
    #[error("another transaction used up the account's quota of scans")]
    QuotaRace,
}

impl Error {
    /// Returns true if the values may be the cause, not the connection to the database.
    #[must_use]
    pub fn may_be_refusal(&self) -> bool {
        match self {
            Self::Pool(_) | Self::QuotaRace => false,
            Self::Query(error) => !is_passing(error),
            Self::Sealed(_) | Self::Json(_) => true,
        }
    }

    /// Returns true if one value is a likely cause, not the connection, the schema or the server's resources.
    #[must_use]
    pub fn may_blame_values(&self) -> bool {
        const OTHERS: [&str; 6] = [
            "canceling statement",
            "could not extend file",
            "could not write",
            "out of memory",
            "permission denied",
            "does not exist",
        ];
        let Self::Query(error) = self else {
            return matches!(self, Self::Json(_));
        };
        match error {
            QueryError::SerializationError(_) | QueryError::DeserializationError(_) => true,
            // diesel has no kind for data exceptions and exceeded limits.
            QueryError::DatabaseError(Unknown, information) => {
                let message = information.message();
                !is_passing(error) && !OTHERS.iter().any(|other| message.contains(other))
            }
            _ => self.is_refusal(),
        }
    }

    /// Returns true if the values break a rule of the schema: trying again changes nothing.
    #[must_use]
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
    /// Error without the pool's own words around the cause, which repeat it.
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

/// Returns true if something was to be made in a Namespace that was deleted meanwhile.
#[must_use]
pub fn lost_namespace(error: &QueryError) -> bool {
    match error {
        QueryError::DatabaseError(ForeignKeyViolation, information) => matches!(
            information.constraint_name(),
            Some("managers_namespace_fkey" | "connections_namespace_fkey")
        ),
        _ => false,
    }
}

/// Returns true if the same query may succeed in a moment: the connection was lost, the server goes down or
/// comes up, or two transactions met.
#[must_use]
pub fn is_passing(error: &QueryError) -> bool {
    match error {
        QueryError::BrokenTransactionManager => true,
        QueryError::RollbackErrorOnCommit { commit_error, .. } => is_passing(commit_error),
        QueryError::DatabaseError(kind, information) => {
            let message = information.message();
            matches!(
                kind,
                ClosedConnection | SerializationFailure | UnableToSendCommand
            ) || [
                "terminating connection",
                "the database system is",
                "deadlock detected",
                "too many connections",
                "sorry, too many clients",
            ]
            .iter()
            .any(|start| message.contains(start))
        }
        _ => false,
    }
}
