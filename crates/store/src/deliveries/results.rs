//! Records attempts in batches of three statements. The last statement decides which deliveries move on.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    time::Duration,
};

use diesel::{
    prelude::*,
    sql_types::{
        Array, Bool, Double, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, DeliveryState, Id, Timestamp};
use uuid::Uuid;

use super::time_of;
use crate::{
    QueryResult,
    prepared::query,
    stats::{self, Deltas},
    words,
};

/// One attempt, as stored in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the attempt, starting at 1.
    pub number: u32,
    pub time: Timestamp,
    pub status_code: Option<u16>,
    pub error: Option<String>,
    pub latency: Duration,
    pub dns: Option<Duration>,
    pub connect: Option<Duration>,
    pub tls: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub address: Option<String>,
    pub response_body: Option<String>,
}

/// Next state of the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Succeeded,
    /// Delay from the time of recording, by the database's clock.
    RetryIn(Duration),
    /// Exhausted after its last attempt, whose error it keeps.
    Exhausted,
    /// Expired because of its age.
    Expired,
}

impl Verdict {
    fn state(self) -> DeliveryState {
        match self {
            Self::Succeeded => DeliveryState::Succeeded,
            Self::RetryIn(_) => DeliveryState::Retrying,
            Self::Exhausted | Self::Expired => DeliveryState::Exhausted,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub delivery: DeliveryName,
    pub attempt: Attempt,
    pub verdict: Verdict,
}

impl AttemptResult {
    /// Stored reason of a delivery that is never sent.
    fn reason(&self) -> Option<Cow<'_, str>> {
        match self.verdict {
            Verdict::Expired => Some(Cow::Borrowed("expired")),
            _ => self.attempt.error.as_deref().map(words::text),
        }
    }
}

/// Outcome of a batch.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    /// Deliveries that were still leased to the replica, and have moved on.
    pub moved: HashSet<Id>,
    /// Connections of deliveries that were requested again meanwhile and so wait: for [`crate::lanes::mark_due`]
    /// after the commit.
    pub reopened: Vec<ConnectionName>,
}

/// Stores the attempts and moves their deliveries on. If `replica` has lost the lease of a delivery, the delivery
/// keeps the state that its new holder sets, but the attempt is still recorded, because it was made. If a batch is
/// recorded again because its commit was not answered, nothing moves.
///
/// Call inside a transaction.
pub async fn record_results(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    results: &[&AttemptResult],
) -> QueryResult<Recorded> {
    let optional = |phase: fn(&Attempt) -> Option<Duration>| -> Vec<Option<i32>> {
        let phases = results.iter().map(|result| phase(&result.attempt));
        phases.map(|phase| phase.map(millis)).collect()
    };
    let texts = |text: fn(&Attempt) -> Option<&str>| -> Vec<Option<Cow<'_, str>>> {
        let texts = results.iter().map(|result| text(&result.attempt));
        texts.map(|text| text.map(words::text)).collect()
    };
    let ids = results.iter().map(|one| one.delivery.delivery.to_uuid());
    let numbers =
        { results.iter() }.map(|one| i32::try_from(one.attempt.number).unwrap_or(i32::MAX));
    let times = results.iter().map(|one| one.attempt.time.to_chrono());
    let latencies = results.iter().map(|one| millis(one.attempt.latency));
    query!(
        "deliveries/insert_attempts",
        Array<SqlUuid>: ids.collect::<Vec<_>>(),
        Array<Integer>: numbers.collect::<Vec<_>>(),
        Array<Timestamptz>: times.collect::<Vec<_>>(),
        Array<Nullable<SmallInt>>: status_codes(results),
        Array<Nullable<Text>>: texts(|attempt| attempt.error.as_deref()),
        Array<Integer>: latencies.collect::<Vec<_>>(),
        Array<Nullable<Integer>>: optional(|attempt| attempt.dns),
        Array<Nullable<Integer>>: optional(|attempt| attempt.connect),
        Array<Nullable<Integer>>: optional(|attempt| attempt.tls),
        Array<Nullable<Integer>>: optional(|attempt| attempt.first_byte),
        Array<Nullable<Text>>: texts(|attempt| attempt.address.as_deref()),
        Array<Nullable<Text>>: texts(|attempt| attempt.response_body.as_deref()),
    )
    .execute(conn)
    .await?;

    move_on(conn, replica, results).await
}

/// Moves deliveries on without an entry in the log, for attempts that the log refuses. Returns the same as
/// [`record_results`].
///
/// # Errors
/// If the database does not answer, or refuses this too.
pub async fn move_on(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    results: &[&AttemptResult],
) -> QueryResult<Recorded> {
    // Locked in the order of the key, so that two batches never deadlock.
    let mut sorted: Vec<&AttemptResult> = results.to_vec();
    sorted.sort_unstable_by_key(|result| result.delivery);
    let column = |value: fn(&AttemptResult) -> Uuid| {
        sorted
            .iter()
            .map(|result| value(result))
            .collect::<Vec<Uuid>>()
    };
    let waits: Vec<Option<f64>> = sorted
        .iter()
        .map(|result| match result.verdict {
            Verdict::RetryIn(wait) => Some(wait.as_secs_f64()),
            Verdict::Succeeded | Verdict::Exhausted | Verdict::Expired => None,
        })
        .collect();
    let keys = sorted.iter().map(|one| time_of(one.delivery.delivery));
    let states = sorted.iter().map(|one| one.verdict.state().as_str());
    let times = sorted.iter().map(|one| one.attempt.time.to_chrono());
    let reasons = sorted.iter().map(|one| one.reason());
    let moved: Vec<Moved> = query!(
        "deliveries/move_on",
        Array<SqlUuid>: column(|result| result.delivery.namespace.to_uuid()),
        Array<SqlUuid>: column(|result| result.delivery.connection.to_uuid()),
        Array<Timestamptz>: keys.collect::<Vec<_>>(),
        Array<SqlUuid>: column(|result| result.delivery.delivery.to_uuid()),
        Array<Text>: states.collect::<Vec<_>>(),
        Array<Timestamptz>: times.collect::<Vec<_>>(),
        Array<Nullable<Double>>: waits,
        Array<Nullable<SmallInt>>: status_codes(&sorted),
        Array<Nullable<Text>>: reasons.collect::<Vec<_>>(),
        SqlUuid: replica,
    )
    .load(conn)
    .await?;
    stats::append(conn, &deltas(&sorted, &moved)).await?;
    Ok(Recorded {
        moved: moved.iter().map(|one| Id::from_uuid(one.id)).collect(),
        reopened: moved.iter().filter_map(Moved::reopened).collect(),
    })
}

/// A delivery that was still leased to this replica.
#[derive(QueryableByName)]
struct Moved {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    /// The Scan, or the delivery of a service event: latency counts from its time.
    #[diesel(sql_type = SqlUuid)]
    begin_id: Uuid,
    #[diesel(sql_type = Bool)]
    reopened: bool,
}

impl Moved {
    fn reopened(&self) -> Option<ConnectionName> {
        self.reopened.then(|| ConnectionName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
        })
    }
}

/// Outcomes by Connection. Deliveries whose lease was lost are not counted here, because the new holder counts
/// them.
fn deltas(results: &[&AttemptResult], moved: &[Moved]) -> Deltas {
    let begins: HashMap<Uuid, Id> = moved
        .iter()
        .map(|one| (one.id, Id::from_uuid(one.begin_id)))
        .collect();
    let mut deltas = Deltas::default();
    for result in results {
        let Some(begin) = begins.get(&result.delivery.delivery.to_uuid()) else {
            continue;
        };
        let connection = result.delivery.connection_name();
        let end = result.attempt.time.plus(result.attempt.latency);
        match result.verdict {
            Verdict::Succeeded => deltas.succeeded(connection, end, end.since(begin.time())),
            Verdict::RetryIn(_) => deltas.failed_attempt(connection, end),
            Verdict::Exhausted | Verdict::Expired => {
                deltas.failed_attempt(connection, end);
                deltas.exhausted(connection, end);
            }
        }
    }
    deltas
}

fn status_codes(results: &[&AttemptResult]) -> Vec<Option<i16>> {
    let codes = results.iter().map(|one| one.attempt.status_code);
    codes
        .map(|code| code.and_then(|code| i16::try_from(code).ok()))
        .collect()
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}
