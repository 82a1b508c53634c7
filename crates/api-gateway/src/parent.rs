//! The resource in a path that a list or a custom method belongs to.

use domain::{ConnectionName, ManagerName};
use store::{AsyncPgConnection, connections, managers};

use crate::ApiError;

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
}
