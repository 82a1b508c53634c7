//! Our SQL statements, which each connection parses and plans once.
//!
//! diesel assumes that the text of `sql_query` may differ each time, and prepares it at each call. That is a second
//! round trip and, for large statements, takes longer than running them. The wrapped statements here never change
//! their text; their values are bound. [`query`] reads the text from a file in `queries/`.

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
};

/// Statement in `queries/<name>.sql`, and its values in the order of `$1`, `$2` …, each after its type:
/// `query!("lanes/due", BigInt: per_account, Array<SqlUuid>: known)`.
macro_rules! query {
    ($name:literal $(, $sql_type:ty: $value:expr)* $(,)?) => {
        $crate::prepared::Prepared(
            diesel::sql_query(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/queries/",
                $name,
                ".sql"
            )))
            $(.bind::<$sql_type, _>($value))*,
        )
    };
}
pub(crate) use query;

/// A statement whose text is always the same.
pub(crate) struct Prepared<Q>(pub(crate) Q);

impl<Q> QueryId for Prepared<Q> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Prepared<Q> {
    type SqlType = Q::SqlType;
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<Q> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }

    fn is_safe_to_cache_prepared(&self, _: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}
