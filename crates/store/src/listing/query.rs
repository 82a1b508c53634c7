//! The SQL of a page with its values, as diesel runs it.
//!
//! Unlike `diesel::sql_query`, whose statements are parsed and planned each time, this one is prepared
//! once a connection where it says so: that is most of what a page costs.

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, RunQueryDsl,
    pg::Pg,
    query_builder::{AstPass, Query as DieselQuery, QueryFragment, QueryId},
    sql_types::{Bool, Double, Text, Timestamptz, Untyped, Uuid as SqlUuid},
};
use domain::filter::Literal;
use uuid::Uuid;

pub(crate) enum Bind {
    Uuid(Uuid),
    Literal(Literal),
}

/// A value as the database takes it.
enum Value {
    Uuid(Uuid),
    Text(String),
    Time(DateTime<Utc>),
    Bool(bool),
    Number(f64),
}

/// Rows are read by the names of their columns.
pub(crate) struct Query {
    sql: String,
    values: Vec<Value>,
    is_kept: bool,
}

impl Query {
    /// `sql` names its values `$1`, `$2` …, in the order of `binds`. When `is_kept`, each connection
    /// keeps the statement for as long as it lives.
    pub(super) fn new(sql: String, binds: Vec<Bind>, is_kept: bool) -> Self {
        let value = |bind| match bind {
            Bind::Uuid(id) => Value::Uuid(id),
            Bind::Literal(Literal::Text(text)) => Value::Text(text),
            Bind::Literal(Literal::Time(time)) => Value::Time(time.to_chrono()),
            Bind::Literal(Literal::Bool(flag)) => Value::Bool(flag),
            Bind::Literal(Literal::Number(number)) => Value::Number(number),
        };
        Self {
            sql,
            values: binds.into_iter().map(value).collect(),
            is_kept,
        }
    }
}

impl QueryFragment<Pg> for Query {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if !self.is_kept {
            out.unsafe_to_cache_prepared();
        }
        out.push_sql(&self.sql);
        // Diesel writes a placeholder for each value that it is given, and ours are in the text
        // already: its own go into a comment.
        out.push_sql(" /* ");
        for value in &self.values {
            match value {
                Value::Uuid(id) => out.push_bind_param::<SqlUuid, _>(id)?,
                Value::Text(text) => out.push_bind_param::<Text, _>(text)?,
                Value::Time(time) => out.push_bind_param::<Timestamptz, _>(time)?,
                Value::Bool(flag) => out.push_bind_param::<Bool, _>(flag)?,
                Value::Number(number) => out.push_bind_param::<Double, _>(number)?,
            }
        }
        out.push_sql(" */");
        Ok(())
    }
}

impl QueryId for Query {
    type QueryId = ();

    // So that it is known by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl DieselQuery for Query {
    type SqlType = Untyped;
}

impl<C> RunQueryDsl<C> for Query {}
