//! Metrics and traces of the database: statements, connections, and the wait for them.
//!
//! A statement is identified by its first word (`SELECT`, `WITH`) and, in traces, by its first table; its values
//! are never read. Dashboards and alerts depend on the names of metrics.
//!
//! Cost: a few microseconds per statement, whose beginning diesel formats as text for this. A span is created only
//! if the caller's trace is sampled.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, LazyLock, Mutex, PoisonError, atomic::Ordering},
    time::Instant,
};

use diesel::{
    connection::{Instrumentation, InstrumentationEvent},
    result::{DatabaseErrorKind::ReadOnlyTransaction, Error as QueryError},
};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, deadpool};
use prometheus::{
    IntGauge, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};
use tracing::{Span, field::Empty};

use crate::{
    AsyncPgConnection,
    silence::{Answers, LOST_SERVERS},
    sqlstate,
};

/// Buckets of the OpenTelemetry conventions.
const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
/// First words of statements; other words share one label.
const OPERATIONS: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "WITH",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "SET",
    "COPY",
];
/// Maximum length of a statement that is parsed.
const HEAD: usize = 400;

runtime::metrics! {
    static DURATION: HistogramVec = "db_client_operation_duration_seconds",
        "Time of a statement, from sending it to its result.", ["operation", "error_type"],
        buckets: SECONDS;
    pub(crate) static WAIT: Histogram = "db_client_connection_wait_time_seconds",
        "Time that was waited for a connection of the pool.", buckets: SECONDS;
}

static POOLS: LazyLock<Mutex<Vec<Weak>>> = LazyLock::new(|| {
    runtime::metrics::register_collector(Pools::new());
    Mutex::default()
});

type Weak = ::deadpool::managed::WeakPool<
    AsyncDieselConnectionManager<AsyncPgConnection>,
    deadpool::Object<AsyncPgConnection>,
>;

/// Includes the pool's connections in the metrics, for as long as it lives.
pub(crate) fn watch(pool: &deadpool::Pool<AsyncPgConnection>) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|pool| pool.upgrade().is_some());
    pools.push(pool.weak());
}

/// Reads all pools of the process when metrics are collected.
struct Pools {
    count: IntGaugeVec,
    pending: IntGauge,
}

impl Pools {
    fn new() -> Self {
        let count = Opts::new(
            "db_client_connection_count",
            "Connections that are open, by state.",
        );
        let pending = Opts::new(
            "db_client_connection_pending_requests",
            "Work that waits for a connection.",
        );
        Self {
            count: IntGaugeVec::new(count, &["state"]).expect("the names are valid"),
            pending: IntGauge::with_opts(pending).expect("the names are valid"),
        }
    }
}

impl Collector for Pools {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.count.desc();
        all.extend(self.pending.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let (mut idle, mut used, mut pending) = (0, 0, 0);
        {
            let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
            for pool in pools.iter().filter_map(Weak::upgrade) {
                let status = pool.status();
                idle += status.available;
                used += status.size.saturating_sub(status.available);
                pending += status.waiting;
            }
        }
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.count.with_label_values(&["idle"]).set(number(idle));
        self.count.with_label_values(&["used"]).set(number(used));
        self.pending.set(number(pending));
        let mut all = self.count.collect();
        all.extend(self.pending.collect());
        all
    }
}

/// Observes the statements of one connection.
pub(crate) struct Statements {
    open: Option<Open>,
    answers: Arc<Answers>,
}

impl Statements {
    pub(crate) fn new(answers: Arc<Answers>) -> Self {
        Self {
            open: None,
            answers,
        }
    }
}

/// A statement without a result yet. If its caller has gone, the next statement replaces it.
struct Open {
    operation: &'static str,
    begin: Instant,
    span: Option<Span>,
}

impl Instrumentation for Statements {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartQuery { query, .. } => {
                let mut head = Head::default();
                // The rest of a long statement is cut off.
                let _ = write!(head, "{query}");
                let operation = head.operation();
                self.answers.begin(operation == "COMMIT");
                let is_sampled = events::TraceContext::is_sampled_now();
                self.open = Some(Open {
                    operation,
                    begin: Instant::now(),
                    span: is_sampled.then(|| span(operation, &head.table())),
                });
            }
            InstrumentationEvent::FinishQuery { error, .. } => {
                self.answers.answered();
                if let Some(QueryError::DatabaseError(ReadOnlyTransaction, _)) = error {
                    LOST_SERVERS.fetch_add(1, Ordering::Relaxed);
                }
                let Some(open) = self.open.take() else { return };
                let error_type = error.map_or("", error_type);
                DURATION
                    .with_label_values(&[open.operation, error_type])
                    .observe(open.begin.elapsed().as_secs_f64());
                if let (Some(span), Some(_)) = (&open.span, error) {
                    span.record("otel.status_code", "ERROR");
                }
            }
            _ => {}
        }
    }
}

/// `refused` is an error that the next statement gets too, whatever it is about: the server is read-only or full, its
/// disk fails, or this service's role lacks a right.
fn error_type(error: &QueryError) -> &'static str {
    let QueryError::DatabaseError(kind, information) = error else {
        return "error";
    };
    let code = sqlstate::of(information.as_ref());
    let refuses = matches!(
        code.as_ref(),
        Some(b"25006" | b"42501" | b"53100" | b"53200" | b"58030")
    );
    if refuses || matches!(kind, ReadOnlyTransaction) {
        "refused"
    } else {
        "error"
    }
}

fn span(operation: &str, table: &str) -> Span {
    let name = format!("{operation} {table}");
    tracing::info_span!(
        "statement",
        otel.name = name.trim_end(),
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "postgresql",
        db.operation.name = operation,
        db.collection.name = table,
        db.query.summary = name.trim_end(),
    )
}

/// The beginning of a statement.
#[derive(Default)]
struct Head(String);

impl fmt::Write for Head {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = if self.0.is_empty() {
            without_comments(text)
        } else {
            text
        };
        let room = HEAD - self.0.len();
        let taken = text.floor_char_boundary(room);
        self.0.push_str(&text[..taken]);
        if taken < text.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// Removes the comments above a statement: files in `queries/` begin with the types of their values.
fn without_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with("--") {
        rest = rest.split_once('\n').map_or("", |(_, after)| after);
        rest = rest.trim_start();
    }
    rest
}

impl Head {
    fn operation(&self) -> &'static str {
        let first = self.0.split_whitespace().next().unwrap_or_default();
        let known = OPERATIONS.iter().copied();
        known
            .into_iter()
            .find(|word| first.trim_end_matches(';').eq_ignore_ascii_case(word))
            .unwrap_or("OTHER")
    }

    /// Returns the first table that the statement names, if any. Ignores what follows the text, where diesel prints
    /// values.
    fn table(&self) -> String {
        let text = self.0.split(" -- binds").next().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let names_table = |word: &str| {
            let mut keys = ["FROM", "INTO", "UPDATE"].iter();
            keys.any(|key| word.eq_ignore_ascii_case(key))
        };
        for (at, pair) in words.windows(2).enumerate() {
            let (key, table) = (pair[0], pair[1]);
            // `IS DISTINCT FROM` compares.
            let compares = at > 0 && words[at - 1].eq_ignore_ascii_case("DISTINCT");
            if compares || !names_table(key) {
                continue;
            }
            let table = table.trim_matches(['"', ',', ';', ')']);
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if !table.is_empty() && table.bytes().all(is_name) {
                return table.to_ascii_lowercase();
            }
        }
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{HEAD, Head};

    fn head(text: &str) -> Head {
        let mut head = Head::default();
        let _ = write!(head, "{text}");
        head
    }

    #[test]
    fn statement_is_labelled_by_its_first_word_and_table() {
        for (text, operation, table) in [
            ("SELECT \"a\".\"b\" FROM \"keys\" WHERE x", "SELECT", "keys"),
            ("INSERT INTO purges (a) VALUES ($1)", "INSERT", "purges"),
            ("update feeds set a = 1", "UPDATE", "feeds"),
            (
                "WITH due AS (SELECT * FROM unnest($1)) UPDATE scans AS s",
                "WITH",
                "scans",
            ),
            ("SELECT 1 -- binds: [\"from secrets\"]", "SELECT", ""),
            ("SELECT a IS DISTINCT FROM b FROM posts", "SELECT", "posts"),
            (
                "-- $1 uuid: id\n-- $2 text: from\nSELECT 1 FROM scans",
                "SELECT",
                "scans",
            ),
            ("BEGIN", "BEGIN", ""),
            ("VACUUM x", "OTHER", ""),
            ("", "OTHER", ""),
        ] {
            let head = head(text);
            assert_eq!(
                (head.operation(), head.table().as_str()),
                (operation, table),
                "{text}"
            );
        }
    }

    #[test]
    fn only_the_beginning_of_a_statement_is_read() {
        let comments = "-- $1 uuid: id\n".repeat(HEAD);
        let head = head(&format!("{comments}SELECT {}", "é".repeat(HEAD)));
        assert!(head.0.len() <= HEAD);
        assert_eq!(head.operation(), "SELECT");
    }
}
