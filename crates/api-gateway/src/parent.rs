//! The Manager or Connection in a path, where a handler only needs to know whether it exists.

use domain::{ConnectionName, ManagerName};
use store::{AsyncPgConnection, connections, managers};

use crate::{ApiError, authenticate::Caller};

#[derive(Clone, Copy)]
pub(crate) enum Parent {
    Manager(ManagerName),
    Connection(ConnectionName),
}

impl Parent {
    /// Returns an error if there is no such resource.
    pub(crate) async fn check(self, conn: &mut AsyncPgConnection) -> Result<(), ApiError> {
        let (exists, kind) = match self {
            Self::Manager(name) => (managers::exists(conn, name).await?, "manager"),
            Self::Connection(name) => (connections::exists(conn, name).await?, "connection"),
        };
        exists.then_some(()).ok_or(ApiError::NotFound(kind))
    }

    /// Returns `checked`. If it is an error and the resource is missing, that is reported instead.
    pub(crate) async fn before<T, E: Into<ApiError>>(
        self,
        caller: &Caller,
        checked: Result<T, E>,
    ) -> Result<T, ApiError> {
        match checked {
            Ok(checked) => Ok(checked),
            Err(error) => {
                self.check(&mut *caller.connection().await?).await?;
                Err(error.into())
            }
        }
    }
}
