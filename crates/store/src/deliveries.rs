//! Deliveries: created once per Scan or service event and Connection, leased while their request is in flight, with
//! every attempt recorded.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Bytea, Integer, Nullable, Text, Timestamptz},
};
use domain::{
    DeliveryName, Id, Post, ScanName, ServiceEvent, Timestamp,
    connection::{Format, Headers, Method, SigningSecret},
};

use crate::{Error, connections, seal::Sealer};

mod claim;
mod fan_out;
mod log;
mod notice_filters;
mod orphans;
mod posts;
mod reopen;
mod results;
mod sweep;

pub use claim::{MAX_URGENT, Want, claim, claim_locked, claim_urgent};
pub use fan_out::{FannedOut, Made, fan_out};
#[cfg(test)]
pub(crate) use log::LISTING;
pub use log::{cost, cost_of_all, get, get_with_attempts, list, list_all};
pub use orphans::{Orphan, free_orphans, hand_back};
pub use reopen::reopen;
pub use results::{Attempt, AttemptResult, Recorded, Verdict, move_on, record_results};
pub use sweep::{
    Endpoints, LaneTotals, UnfinishedCounts, Waiting, cancel_waiting, count_unfinished, endpoints,
    expire, find_waiting, follow_clock, is_sweeper, lane_totals,
};

/// Age of a leased delivery, up to its maximum age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    begin: Timestamp,
    /// Age when the delivery was leased, by the database's clock.
    at_lease: Duration,
    lease: Instant,
}

impl Age {
    /// Age of a delivery that is leased now, when the database's clock says `database_now`. It counts from `begin`:
    /// when the delivery was created or last reopened, or when its Connection was last changed. So what waited while
    /// the Connection was disabled has its whole schedule afterwards.
    pub fn new(begin: Timestamp, database_now: Timestamp) -> Self {
        Self {
            begin,
            at_lease: database_now.since(begin),
            lease: Instant::now(),
        }
    }

    /// Returns the age by the database's clock or by `now`, this process's clock, whichever is less: a single wrong
    /// clock expires nothing.
    pub fn at(self, now: Timestamp) -> Duration {
        (self.at_lease + self.lease.elapsed()).min(now.since(self.begin))
    }
}

/// The Scan or service event of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// The post is shared by the deliveries of a fan-out.
    Scan {
        name: ScanName,
        post: Arc<Post>,
    },
    Event(Box<ServiceEvent>),
}

/// Everything that a dispatcher needs for one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub delivery: DeliveryName,
    pub subject: Subject,
    /// Account of the Connection: accounts take turns.
    pub account: Id,
    /// True if a person requested it: it is sent even if the circuit breaker is open.
    pub urgent: bool,
    /// Attempts made so far.
    pub attempt_count: u32,
    /// Attempts before it was last reopened, and those that our own limit delayed; the schedule counts only the others.
    pub schedule_base: u32,
    /// Status of the last attempt, if there was a response.
    pub last_status_code: Option<u16>,
    /// When a person or a replay asked for this delivery again.
    pub reopen_time: Option<Timestamp>,
    pub age: Age,
    pub url: String,
    /// Time of the Connection's last change; it shows if the owner has changed it since.
    pub connection_update_time: Timestamp,
    pub method: Method,
    pub headers: Headers,
    pub format: Format,
    pub max_per_second: Option<u32>,
    pub signing_secrets: Vec<SigningSecret>,
    /// Trace context of what led to it, if it is traced.
    pub traceparent: Option<String>,
}

impl Task {
    /// Size of the post's title and text, which is nearly the size of the whole post; 0 for a service event.
    pub fn post_bytes(&self) -> usize {
        let Subject::Scan { post, .. } = &self.subject else {
            return 0;
        };
        let len = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        len(&post.title) + len(&post.text)
    }

    /// Its Scan; `None` for a service event.
    pub fn scan(&self) -> Option<ScanName> {
        match &self.subject {
            Subject::Scan { name, .. } => Some(*name),
            Subject::Event(_) => None,
        }
    }
}

/// A leased delivery that cannot be sent, for example because its Connection's headers are sealed with a key that
/// is not configured.
#[derive(Debug, thiserror::Error)]
#[error("no request can be made for {delivery}")]
pub struct Unsendable {
    pub delivery: DeliveryName,
    /// Attempts made so far, and how many of them were before it was last reopened.
    pub attempt_count: u32,
    pub schedule_base: u32,
    pub age: Age,
    #[source]
    pub error: Error,
}

/// A claimed delivery, leased either way.
pub type Claimed = Result<Task, Box<Unsendable>>;

/// Stored endpoint of a Connection.
#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct EndpointRow {
    #[diesel(sql_type = Text)]
    connection_url: String,
    #[diesel(sql_type = Nullable<Bytea>)]
    url_sealed: Option<Vec<u8>>,
    #[diesel(sql_type = Timestamptz)]
    connection_update_time: DateTime<Utc>,
    #[diesel(sql_type = Text)]
    method: String,
    #[diesel(sql_type = Bytea)]
    headers_sealed: Vec<u8>,
    #[diesel(sql_type = Text)]
    format: String,
    #[diesel(sql_type = Nullable<Integer>)]
    max_per_second: Option<i32>,
    #[diesel(sql_type = Nullable<Bytea>)]
    signing_secrets_sealed: Option<Vec<u8>>,
}

/// A delivery without its Connection and its subject.
struct Opening {
    delivery: DeliveryName,
    account: Id,
    attempt_count: u32,
    schedule_base: u32,
    last_status_code: Option<u16>,
    reopen_time: Option<Timestamp>,
    age: Age,
    urgent: bool,
    traceparent: Option<String>,
}

impl EndpointRow {
    fn task(self, opening: Opening, subject: Subject, sealer: &Sealer) -> Result<Task, Error> {
        let connection = opening.delivery.connection_name();
        Ok(Task {
            delivery: opening.delivery,
            subject,
            account: opening.account,
            urgent: opening.urgent,
            attempt_count: opening.attempt_count,
            schedule_base: opening.schedule_base,
            last_status_code: opening.last_status_code,
            reopen_time: opening.reopen_time,
            age: opening.age,
            url: connections::open_url(
                self.connection_url,
                self.url_sealed.as_deref(),
                connection,
                sealer,
            )?,
            connection_update_time: self.connection_update_time.into(),
            method: connections::method(&self.method)?,
            headers: connections::open_headers(&self.headers_sealed, connection, sealer)?,
            format: connections::format(&self.format)?,
            max_per_second: connections::max_per_second(self.max_per_second),
            signing_secrets: connections::open_secrets(
                self.signing_secrets_sealed.as_deref(),
                connection,
                sealer,
            )?,
            traceparent: opening.traceparent,
        })
    }
}

/// Time of a row, which its id contains.
fn time_of(id: Id) -> DateTime<Utc> {
    id.time().to_chrono()
}
