//! One page of any list: filter, order and page token as SQL.
//!
//! Uses keyset paging: a page costs only its own rows, at any depth, as long as an index serves the order. Literals
//! are always bound, never written into the text. Column expressions come from the tables below, never from the
//! request.

use diesel_async::AsyncPgConnection;
use domain::{
    Id, ScanName, Timestamp,
    field::{self, Field, Kind, Literal, Op},
    filter::{Clause, Comparison, Filter},
    list::{self, ListQuery},
    order::Direction,
    page::PageToken,
};
use serde::Serialize;
use uuid::Uuid;

use crate::QueryResult;

mod cost;
mod query;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use cost::ROW;
pub use cost::{MAX_COST, is_by_create_time};
use query::{Bind, Query};
pub use rows::MAX_PAGE_BYTES;
pub(crate) use rows::Rows;

/// The SQL of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) field: &'static str,
    pub(crate) sql: &'static str,
    /// True if the expression may be NULL. A missing text equals the empty text; a missing time equals nothing.
    pub(crate) nullable: bool,
    /// Estimated microseconds that one evaluation of the expression takes.
    micros: u64,
}

pub(crate) const fn column(field: &'static str, sql: &'static str) -> Column {
    Column {
        field,
        sql,
        nullable: false,
        micros: 1,
    }
}

pub(crate) const fn nullable(field: &'static str, sql: &'static str) -> Column {
    Column {
        nullable: true,
        ..column(field, sql)
    }
}

impl Column {
    /// Sets the microseconds that the expression takes: for example for long text, or for names, where each id takes
    /// 30.
    pub(crate) const fn taking(self, micros: u64) -> Self {
        Self { micros, ..self }
    }

    /// Returns the expression of a text. Missing text is empty.
    fn text(&self) -> String {
        if self.nullable {
            format!("coalesce({}, '')", self.sql)
        } else {
            self.sql.to_owned()
        }
    }
}

/// The rows to read, and the SQL of their fields.
pub(crate) struct Listing {
    /// `SELECT … FROM … WHERE …`, with `$1`, `$2` … for the ids of the parents.
    pub(crate) select: &'static str,
    /// The same rows without their joins, for [`Listing::cost`]: an index alone can count them.
    pub(crate) rows: &'static str,
    pub(crate) columns: &'static [Column],
    /// The id that breaks ties, and that has the same order as `name`.
    pub(crate) id: &'static str,
    /// Returns true if an index serves the comparison in the order of `createTime`, in addition to comparisons of
    /// `createTime` itself.
    pub(crate) is_indexed: fn(&ListQuery, &Comparison) -> bool,
}

/// Value of [`Listing::is_indexed`] for most lists.
pub(crate) fn no_other_index(_: &ListQuery, _: &Comparison) -> bool {
    false
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Absent on the last page.
    pub next_page_token: Option<String>,
}

impl<T: Serialize> Page<T> {
    /// Creates a page of these items. `more` is [`Rows::more`].
    pub(crate) fn new(list: &ListQuery, items: Vec<(Id, T)>, more: bool) -> Self {
        Self::with_place(list, items, more, |item| place(list, item))
    }

    /// Same as [`Page::new`], for items with a `createTime`. Most lists are ordered only by that, and then the page
    /// token needs no JSON of an item.
    pub(crate) fn of_times(
        list: &ListQuery,
        items: Vec<(Id, T)>,
        more: bool,
        create_time: impl Fn(&T) -> Timestamp,
    ) -> Self {
        Self::with_place(list, items, more, |item| match list.order.0.as_slice() {
            [(field, _)] if field.name == "createTime" => {
                vec![Some(Literal::Time(create_time(item)))]
            }
            _ => place(list, item),
        })
    }

    fn with_place(
        list: &ListQuery,
        items: Vec<(Id, T)>,
        more: bool,
        place: impl Fn(&T) -> Vec<Option<Literal>>,
    ) -> Self {
        let next_page_token = items.last().filter(|_| more).map(|(id, item)| {
            PageToken {
                values: place(item),
                id: *id,
            }
            .encode(&list.binding)
        });
        Self {
            items: items.into_iter().map(|(_, item)| item).collect(),
            next_page_token,
        }
    }
}

/// Returns the values of `item` that the list is ordered by.
fn place<T: Serialize>(list: &ListQuery, item: &T) -> Vec<Option<Literal>> {
    // Our items always have a JSON form. If one had none, its position would be the start.
    let json = serde_json::to_value(item).unwrap_or_default();
    let order = list.order.0.iter();
    order
        .map(|(field, _)| field::value_of(&json, field).map(shorten))
        .collect()
}

impl Listing {
    /// Query for one page and one more item, which shows if another page follows.
    pub(crate) fn page(&self, parents: &[Uuid], list: &ListQuery) -> Query {
        let mut text = Builder::new(self, self.select, parents);
        text.rows(list);
        text.finish(list)
    }

    /// Same as [`Listing::page`], for the children of many parents: `select` begins with the parents and a lateral
    /// subquery for the children of one, which `close` ends. Each parent yields at most one page, in the order that
    /// the index of one parent serves, and the final page is taken from those.
    pub(crate) fn page_of_each(&self, parents: &[Uuid], list: &ListQuery, close: &str) -> Query {
        let mut text = Builder::new(self, self.select, parents);
        text.rows(list);
        text.sql.push_str(close);
        text.top(list);
        text.finish(list)
    }

    /// Query for those of some given Scans that meet their filter. `select` ends with `CASE`, and takes the keys of
    /// the Scans and the positions of their filters in `filters` as its parameters.
    pub(crate) fn meeting(
        &self,
        select: &str,
        given: &[(ScanName, usize)],
        filters: &[&Filter],
    ) -> Query {
        let uuids = |id: fn(&ScanName) -> Id| -> Bind {
            Bind::Uuids(given.iter().map(|(scan, _)| id(scan).to_uuid()).collect())
        };
        let times = given
            .iter()
            .map(|(scan, _)| scan.scan.time().to_chrono())
            .collect();
        let numbers = given
            .iter()
            .map(|(_, filter)| i32::try_from(*filter).unwrap_or(i32::MAX))
            .collect();
        let mut text = Builder::new(self, select, &[]);
        text.binds.extend([
            uuids(|scan| scan.namespace),
            uuids(|scan| scan.manager),
            Bind::Times(times),
            uuids(|scan| scan.scan),
            Bind::Numbers(numbers),
        ]);
        for (number, filter) in filters.iter().enumerate() {
            text.sql.push_str(&format!(" WHEN {number} THEN true"));
            text.filter(filter);
        }
        text.sql.push_str(" END");
        Query::new(text.sql, text.binds, false)
    }

    /// Estimates in microseconds how long the most expensive page of the list takes, which is one that few rows
    /// match: each row within the bounds of `createTime` is read. If it exceeds [`MAX_COST`], the exact value has
    /// no meaning. The same rows give the same estimate, regardless of load. Costs an index scan, limited by
    /// [`MAX_COST`].
    pub(crate) async fn cost(
        &self,
        conn: &mut AsyncPgConnection,
        parents: &[Uuid],
        list: &ListQuery,
        close: &str,
    ) -> QueryResult<u64> {
        if is_by_create_time(list) {
            return Ok(0);
        }
        let per_row = cost::per_row(self, list);
        let most = MAX_COST / per_row + 1;
        let mut text = Builder::new(self, self.rows, parents);
        for clause in &list.filter.0 {
            if let [one] = clause.0.as_slice()
                && cost::is_bound(self, list, one)
            {
                text.clause(clause);
            }
        }
        if let [(field, direction), ..] = effective(list).as_slice()
            && let Some(token) = &list.after
            && let Some(value @ Literal::Time(_)) = token.values.first().cloned().flatten()
            && field.name == "createTime"
        {
            let key = text.order_key(field.name, field.kind);
            text.prune(&[(key, *direction, Bind::Literal(value))]);
        }
        text.sql.push_str(&format!("{close} LIMIT {most}"));
        let rows = cost::count(conn, text).await?;
        Ok(rows.saturating_mul(per_row))
    }

    fn column(&self, field: &str) -> &Column {
        self.columns
            .iter()
            .find(|column| column.field == field)
            .expect("every field of a list has a column: tests hold both tables to each other")
    }
}

/// Case-sensitive collation that every build with ICU has.
const CASE: &str = "\"und-x-icu\"";

/// Folds the case of `text`. It folds to upper case, because lower case writes a sigma by its position in the word;
/// and first to lower case, because some capitals, such as the Kelvin sign, are those of another letter.
fn folded(text: &str) -> String {
    format!("upper(lower({text} COLLATE {CASE}))")
}

/// Name of a folded text. No column has this name, because other comparisons in the same subquery must see the
/// original column.
fn folded_name(field: &str) -> String {
    format!("\"folded {field}\"")
}

/// Text is ordered by so many characters, then by the name: a page token contains them.
const ORDERED_CHARS: usize = 200;

struct Builder<'a> {
    listing: &'a Listing,
    sql: String,
    binds: Vec<Bind>,
}

impl<'a> Builder<'a> {
    fn new(listing: &'a Listing, select: &str, parents: &[Uuid]) -> Self {
        Self {
            listing,
            sql: select.to_owned(),
            binds: parents.iter().map(|id| Bind::Uuid(*id)).collect(),
        }
    }

    /// Adds everything after the parents.
    fn rows(&mut self, list: &ListQuery) {
        self.filter(&list.filter);
        self.after(list);
        self.top(list);
    }

    fn filter(&mut self, filter: &Filter) {
        let searches = |clause: &&Clause| clause.0.iter().any(|one| one.op == Op::Has);
        for clause in filter.0.iter().filter(|clause| !searches(clause)) {
            self.clause(clause);
        }
        let searched: Vec<&Clause> = filter.0.iter().filter(searches).collect();
        self.searches(&searched);
    }

    /// Adds clauses that search texts. Folding a text takes far longer than searching it. So each text is folded once,
    /// in a subquery that `OFFSET 0` separates, regardless of how often it is searched.
    fn searches(&mut self, clauses: &[&Clause]) {
        if clauses.is_empty() {
            return;
        }
        self.sql.push_str(" AND (SELECT TRUE");
        for clause in clauses {
            self.clause(clause);
        }
        let comparisons = clauses.iter().flat_map(|clause| &clause.0);
        let texts = cost::searched(comparisons).map(|field| {
            let text = folded(&self.listing.column(field).text());
            format!("{text} AS {}", folded_name(field))
        });
        let texts = texts.collect::<Vec<_>>().join(", ");
        self.sql
            .push_str(&format!(" FROM (SELECT {texts} OFFSET 0) AS folded)"));
    }

    /// Adds order and limit. The limit is written into the text: for a bound parameter the planner would assume a
    /// long list.
    fn top(&mut self, list: &ListQuery) {
        self.order(list);
        self.sql.push_str(&format!(" LIMIT {}", list.page_size + 1));
    }

    fn finish(self, list: &ListQuery) -> Query {
        Query::new(self.sql, self.binds, is_usual(list))
    }

    fn bind(&mut self, bind: Bind, write: impl FnOnce(&mut String, &str)) {
        self.binds.push(bind);
        let place = format!("${}", self.binds.len());
        write(&mut self.sql, &place);
    }

    fn clause(&mut self, clause: &Clause) {
        for (at, comparison) in clause.0.iter().enumerate() {
            self.sql.push_str(if at == 0 { " AND (" } else { " OR " });
            self.comparison(comparison);
        }
        self.sql.push(')');
    }

    fn comparison(&mut self, comparison: &Comparison) {
        let column = *self.listing.column(comparison.field);
        let text = matches!(comparison.literal, Literal::Text(_));
        // Compares text by code point, regardless of the database's locale.
        let left = if text {
            format!("{} COLLATE \"C\"", column.text())
        } else {
            column.sql.to_owned()
        };
        let negation = if comparison.negated { "NOT " } else { "" };
        let op = match comparison.op {
            Op::Equal => "=",
            Op::NotEqual => "<>",
            Op::Less => "<",
            Op::LessOrEqual => "<=",
            Op::Greater => ">",
            Op::GreaterOrEqual => ">=",
            Op::Has => {
                return self.bind(Bind::Literal(comparison.literal.clone()), |sql, place| {
                    sql.push_str(&format!(
                        "{negation}strpos(folded.{}, {}) > 0",
                        folded_name(column.field),
                        folded(place)
                    ));
                });
            }
        };
        // A comparison with a missing value is never true. Without a guard an index can serve it, so only negations
        // get one.
        let guard = column.nullable && !text && comparison.negated;
        self.bind(Bind::Literal(comparison.literal.clone()), |sql, place| {
            sql.push_str(&if guard {
                format!("{negation}coalesce({left} {op} {place}, false)")
            } else {
                format!("{negation}{left} {op} {place}")
            });
        });
    }

    /// Condition that an item comes after the position of the page token.
    ///
    /// `(a, b, id) > (x, y, z)` if all directions are the same, which an index serves directly; else `a > x OR (a =
    /// x AND (b < y OR …))`.
    fn after(&mut self, list: &ListQuery) {
        let Some(token) = &list.after else { return };
        let mut keys: Vec<(String, Direction, Bind)> = Vec::new();
        for (at, (field, direction)) in effective(list).into_iter().enumerate() {
            let value = match list.order.0.get(at) {
                Some((given, _)) if given.name == field.name => token.values.get(at).cloned(),
                // Replaces `name`, which contains it.
                _ => Some(Some(Literal::Time(token.id.time()))),
            };
            let value = value.flatten().unwrap_or_else(|| missing(field.kind));
            keys.push((
                self.order_key(field.name, field.kind),
                direction,
                Bind::Literal(value),
            ));
        }
        let last = last_direction(list);
        self.prune(&keys);
        keys.push((
            self.listing.id.to_owned(),
            last,
            Bind::Uuid(token.id.to_uuid()),
        ));

        if keys.iter().all(|(_, direction, _)| *direction == last) {
            let columns = keys
                .iter()
                .map(|(sql, ..)| sql.as_str())
                .collect::<Vec<_>>()
                .join(", ");
            self.sql
                .push_str(&format!(" AND ({columns}) {} (", sign(last)));
            for (at, (_, _, bind)) in keys.into_iter().enumerate() {
                self.bind(bind, |sql, place| {
                    sql.push_str(&format!("{}{place}", if at == 0 { "" } else { ", " }))
                });
            }
            self.sql.push(')');
            return;
        }
        self.sql.push_str(" AND (");
        let depth = keys.len();
        for (at, (column, direction, bind)) in keys.into_iter().enumerate() {
            self.bind(bind, |sql, place| {
                sql.push_str(&format!("{column} {} {place}", sign(direction)));
                if at + 1 < depth {
                    sql.push_str(&format!(" OR ({column} = {place} AND ("));
                }
            });
        }
        self.sql.push_str(&"))".repeat(depth - 1));
        self.sql.push(')');
    }

    /// Adds the condition of [`Builder::after`] on the first key alone. Unlike a comparison of rows, it lets
    /// PostgreSQL skip partitions.
    fn prune(&mut self, keys: &[(String, Direction, Bind)]) {
        if let Some((column, direction, Bind::Literal(value @ Literal::Time(_)))) = keys.first() {
            let (column, sign) = (column.clone(), sign(*direction));
            self.bind(Bind::Literal(value.clone()), |sql, place| {
                sql.push_str(&format!(" AND {column} {sign}= {place}"));
            });
        }
    }

    fn order(&mut self, list: &ListQuery) {
        let mut keys: Vec<String> = effective(list)
            .into_iter()
            .map(|(field, direction)| {
                format!(
                    "{} {}",
                    self.order_key(field.name, field.kind),
                    word(direction)
                )
            })
            .collect();
        keys.push(format!(
            "{} {}",
            self.listing.id,
            word(last_direction(list))
        ));
        self.sql.push_str(" ORDER BY ");
        self.sql.push_str(&keys.join(", "));
    }

    fn order_key(&self, field: &str, kind: Kind) -> String {
        let column = self.listing.column(field);
        match (kind, column.nullable) {
            (Kind::Text | Kind::Texts | Kind::Word(_), true) => {
                format!(
                    "left(coalesce({}, ''), {ORDERED_CHARS}) COLLATE \"C\"",
                    column.sql
                )
            }
            (Kind::Text | Kind::Texts | Kind::Word(_), false) => {
                format!("left({}, {ORDERED_CHARS}) COLLATE \"C\"", column.sql)
            }
            (Kind::Time, true) => format!("coalesce({}, 'epoch'::timestamptz)", column.sql),
            (Kind::Number, true) => format!("coalesce({}, 0)", column.sql),
            (Kind::Bool, true) => format!("coalesce({}, false)", column.sql),
            (Kind::Time | Kind::Bool | Kind::Number, _) => column.sql.to_owned(),
        }
    }
}

/// Shortens a value to what [`Builder::order_key`] orders by.
fn shorten(value: Literal) -> Literal {
    match value {
        Literal::Text(text) => Literal::Text(text.chars().take(ORDERED_CHARS).collect()),
        Literal::Time(_) | Literal::Bool(_) | Literal::Number(_) => value,
    }
}

/// Returns the value that replaces a missing one in the order.
fn missing(kind: Kind) -> Literal {
    match kind {
        Kind::Text | Kind::Texts | Kind::Word(_) => Literal::Text(String::new()),
        Kind::Time => Literal::Time(Timestamp::UNIX_EPOCH),
        Kind::Bool => Literal::Bool(false),
        Kind::Number => Literal::Number(0.0),
    }
}

/// Returns the fields up to `name`, after which there are no ties. Names of one parent have the order of ids, and
/// ids have the order of creation times, which have an index.
fn effective(list: &ListQuery) -> Vec<(Field, Direction)> {
    let order = &list.order.0;
    let Some(end) = order.iter().position(|(field, _)| field.name == "name") else {
        return order.clone();
    };
    let mut fields = order[..end].to_vec();
    if !fields.iter().any(|(field, _)| field.name == "createTime") {
        let field = Field {
            name: "createTime",
            kind: Kind::Time,
        };
        fields.push((field, order[end].1));
    }
    fields
}

/// Returns true if many lists have this form, so that its plan is worth keeping. Only few forms qualify, because
/// clients choose them and each connection keeps its own plans.
fn is_usual(list: &ListQuery) -> bool {
    let size = matches!(
        list.page_size,
        list::DEFAULT_PAGE_SIZE | 20 | 50 | list::MAX_PAGE_SIZE
    );
    let by_time = |field: &str| field == "createTime";
    let order = matches!(list.order.0.as_slice(), [(field, _)] if by_time(field.name));
    let filter = match list.filter.0.as_slice() {
        [] => true,
        [Clause(any)] => matches!(
            any.as_slice(),
            [one] if by_time(one.field) && one.op == Op::Greater && !one.negated
        ),
        _ => false,
    };
    size && order && filter
}

/// Direction of the id: that of `name`, or of the last field.
fn last_direction(list: &ListQuery) -> Direction {
    let order = &list.order.0;
    let name = order.iter().find(|(field, _)| field.name == "name");
    name.or(order.last())
        .map_or(Direction::Descending, |(_, direction)| *direction)
}

fn sign(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => ">",
        Direction::Descending => "<",
    }
}

fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "ASC",
        Direction::Descending => "DESC",
    }
}
