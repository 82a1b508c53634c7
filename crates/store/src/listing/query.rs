//! The SQL of a page with its values, in the form that diesel runs.
//!
//! `diesel::sql_query` parses and plans its statements each time. This one is prepared once per connection if
//! requested, which saves most of the cost of a page.

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult, RunQueryDsl,
    pg::Pg,
    query_builder::{AstPass, Query as DieselQuery, QueryFragment, QueryId},
    sql_types::{Array, Bool, Double, Integer, Text, Timestamptz, Untyped, Uuid as SqlUuid},
};
use domain::field::Literal;
use uuid::Uuid;

pub(crate) enum Bind {
    Uuid(Uuid),
    Uuids(Vec<Uuid>),
    Times(Vec<DateTime<Utc>>),
    Numbers(Vec<i32>),
    Literal(Literal),
}

/// A value in the form that the database accepts.
enum Value {
    Uuid(Uuid),
    Uuids(Vec<Uuid>),
    Times(Vec<DateTime<Utc>>),
    Numbers(Vec<i32>),
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
    /// `sql` refers to its values by `$1`, `$2` …, in the order of `binds`. If `is_kept`, each connection keeps the
    /// prepared statement for its lifetime.
    pub(super) fn new(sql: String, binds: Vec<Bind>, is_kept: bool) -> Self {
        let value = |bind| match bind {
            Bind::Uuid(id) => Value::Uuid(id),
            Bind::Uuids(ids) => Value::Uuids(ids),
            Bind::Times(times) => Value::Times(times),
            Bind::Numbers(numbers) => Value::Numbers(numbers),
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
        // Diesel writes a placeholder for each value, but our text already contains placeholders. So diesel's go
        // into a comment.
        out.push_sql(" /* ");
        for value in &self.values {
            match value {
                Value::Uuid(id) => out.push_bind_param::<SqlUuid, _>(id)?,
                Value::Uuids(ids) => out.push_bind_param::<Array<SqlUuid>, _>(ids)?,
                Value::Times(times) => out.push_bind_param::<Array<Timestamptz>, _>(times)?,
                Value::Numbers(numbers) => {
                    out.push_bind_param::<Array<Integer>, _>(numbers)?;
                }
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

    // So that the statement is identified by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl DieselQuery for Query {
    type SqlType = Untyped;
}

impl<C> RunQueryDsl<C> for Query {}
