//! Our SQL statements, which each connection parses and plans once.
//!
//! diesel takes `sql_query` for text that may be different each time, and prepares it again at each call: a
//! second round trip, and for the larger statements more time than they take to run. What is wrapped here
//! never changes its text; its values are bound.

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
};

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
