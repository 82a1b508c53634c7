//! Finds the saturation point of the whole service, from a platform to a webhook: the rate rises until the first queue
//! grows. At half of that rate it measures the latency of webhooks, the cost of a post, and memory.
//!
//! PostgreSQL, RabbitMQ, scanner and dispatcher are separate processes. Platforms and receiver are in this one, and use
//! a part of the machine.

mod without_broker;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, ScanName, Timestamp,
    connection::{CreateConnection, Format, Headers, Method},
};
use platform_simulator::Simulator;
use store::{connections, seal::Sealer};
use uuid::Uuid;

use super::{Feeds, Options, Scanner, cursors, post, quantile, watch};
use crate::{
    dispatch::{cpu, receiver::Receiver, stack::Stack},
    report::{Report, Row},
};

pub(super) use without_broker::measure as measure_without_broker;

const CONNECTIONS: usize = 1_000;
const FEEDS: Feeds = Feeds {
    number: 16,
    poll_interval: "250ms",
};
const FIRST_RATE: u32 = 100;
/// Maximum rate. Beyond it, feeds get more posts between two polls than the fifty that a poll shows.
const LAST_RATE: u32 = 2_500;
/// Posts that the simulator keeps: as on real platforms, a little more than it shows.
const KEPT: usize = 4_000;
const STEP: Duration = Duration::from_secs(10);
/// A queue has grown when its contents take this much longer at the end of a step than in its middle.
const GROWN: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(120);
/// Interval between two memory samples.
const SAMPLE: Duration = Duration::from_secs(5);
/// Time until caches are warm and the allocators' memory is stable.
const SETTLING: Duration = Duration::from_secs(300);

/// Location of posts that have not arrived; the others wait for their delivery.
#[derive(Clone, Copy, QueryableByName)]
struct Queues {
    #[diesel(sql_type = BigInt)]
    unread: i64,
    #[diesel(sql_type = BigInt)]
    not_fanned_out: i64,
}

struct Bench {
    stack: Stack,
    scanner: Scanner,
    simulator: Simulator,
    receiver: Receiver,
    conn: AsyncPgConnection,
    managers: u32,
    /// Time of publication by post id, in microseconds.
    published: HashMap<String, i64>,
    begin: (Instant, i64),
}

pub(super) async fn measure(options: &Options) -> Result<Report> {
    let mut bench = Bench::start(options).await?;
    let mut report = Report::new("e2e");
    let rate = match options.rate {
        Some(rate) => rate,
        None => bench.knee(&mut report).await? / 2,
    };
    bench.soak(rate, options.soak, &mut report).await?;
    bench.stop()?;
    Ok(report)
}

impl Bench {
    async fn knee(&mut self, report: &mut Report) -> Result<u32> {
        let mut knee = 0;
        let mut rate = FIRST_RATE;
        let mut grown = None;
        while rate <= LAST_RATE && grown.is_none() {
            grown = self.step(rate).await?;
            if grown.is_none() {
                knee = rate;
                rate += (rate / 4).next_multiple_of(25);
            }
        }
        report.row(
            Row::new(
                format!(
                    "knee: {} Managers, {CONNECTIONS} Connections",
                    self.managers
                ),
                format!("{knee} posts/s"),
            )
            .reference(match grown {
                None => format!("no queue has grown at {knee}"),
                Some(queues) => format!(
                    "at {rate}/s: {} not read yet, {} Scans not fanned out",
                    queues.unread, queues.not_fanned_out
                ),
            }),
        );
        let unshown = self.work_off().await?;
        println!("{unshown} posts were gone from their feeds before they were read");
        Ok(knee)
    }

    async fn start(options: &Options) -> Result<Self> {
        let mut stack = Stack::start(&options.home).await?;
        let url = stack.url().to_owned();
        let receiver = Receiver::start().await?;
        let mut conn = store::establish(&url).await?;
        let (namespace, managers) = watch(&mut conn, options.managers, FEEDS).await?;
        notify(&mut conn, namespace, &managers, &receiver.url("/ok")).await?;
        let simulator = Simulator::start("127.0.0.1:0".parse()?)?;
        let amqp_url = stack.rabbitmq().amqp_url();
        let scanner = Scanner::start(options, FEEDS, &url, &amqp_url, &simulator).await?;
        stack.start_dispatcher().await?;
        let begin = Instant::now();
        while cursors(&mut conn).await? < i64::from(FEEDS.number) {
            ensure!(begin.elapsed() < PATIENCE, "the feeds are not read");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        receiver.follow(true);
        Ok(Self {
            stack,
            scanner,
            simulator,
            receiver,
            conn,
            managers: options.managers,
            published: HashMap::new(),
            begin: (Instant::now(), Timestamp::now().micros()),
        })
    }

    /// Publishes at a rate for a while; calls `each` every second.
    async fn publish(
        &mut self,
        rate: u32,
        length: Duration,
        mut each: impl AsyncFnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let begin = Instant::now();
        let before = self.published.len() as u64;
        let (mut number, mut seconds) = (0, 0);
        while begin.elapsed() < length {
            let due = u64::try_from(begin.elapsed().as_millis())? * u64::from(rate) / 1_000;
            while number < due {
                let posted =
                    self.simulator
                        .publish(vec![post(before + number, self.managers, FEEDS)]);
                let now = Timestamp::now().micros();
                let ids = posted.into_iter().map(|posted| posted.post_id);
                self.published.extend(ids.map(|id| (id, now)));
                number += 1;
            }
            if begin.elapsed().as_secs() > seconds {
                seconds = begin.elapsed().as_secs();
                self.simulator.keep_newest(KEPT);
                each(self).await?;
            }
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
        Ok(())
    }

    fn waiting(&self) -> u64 {
        (self.published.len() as u64).saturating_sub(self.receiver.count())
    }

    /// Runs one step. Returns the location of waiting posts if their number has grown.
    async fn step(&mut self, rate: u32) -> Result<Option<Queues>> {
        self.publish(rate, STEP / 2, async |_: &mut Self| Ok(()))
            .await?;
        let middle = self.waiting();
        self.publish(rate, STEP / 2, async |_: &mut Self| Ok(()))
            .await?;
        let end = self.waiting();
        println!("{rate}/s: {middle} posts in progress, then {end}");
        let more = u128::from(end.saturating_sub(middle)) * 1_000;
        if more <= u128::from(rate) * GROWN.as_millis() {
            return Ok(None);
        }
        let queues: Queues = sql_query(
            "SELECT $1 - (SELECT count(*) FROM posts) AS unread, \
                 (SELECT count(*) FROM scans WHERE NOT fanned_out) AS not_fanned_out",
        )
        .bind::<BigInt, _>(i64::try_from(self.published.len())?)
        .get_result(&mut self.conn)
        .await?;
        Ok(Some(queues))
    }

    /// Waits for all posts that the feeds have shown. Drops the others and returns their number: a busy scanner reads
    /// feeds too late.
    async fn work_off(&mut self) -> Result<usize> {
        let begin = Instant::now();
        loop {
            let before = self.receiver.count();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let shown = self.simulator.served();
            let unshown = self.published.keys().filter(|id| !shown.contains_key(*id));
            let unshown: Vec<String> = unshown.cloned().collect();
            let waiting = self.waiting().saturating_sub(unshown.len() as u64);
            if waiting == 0 && self.receiver.count() == before {
                for id in &unshown {
                    self.published.remove(id);
                }
                println!("the backlog was processed within {:.1?}", begin.elapsed());
                return Ok(unshown.len());
            }
            ensure!(begin.elapsed() < PATIENCE, "{waiting} posts never arrived");
        }
    }

    async fn soak(&mut self, rate: u32, seconds: u32, report: &mut Report) -> Result<()> {
        self.receiver.follow(true);
        let before: Vec<String> = self.published.keys().cloned().collect();
        let spent = self.cpu()?;
        let written = self.wal().await?;
        let begin = Instant::now();
        let mut kept: Vec<(f64, [f64; 3])> = Vec::new();
        let mut next = SAMPLE;
        let length = Duration::from_secs(seconds.into());
        self.publish(rate, length, async |bench: &mut Self| {
            if begin.elapsed() >= next {
                next += SAMPLE;
                let now = bench.kept()?;
                println!("{:?}: {now:.1?}", begin.elapsed());
                kept.push((begin.elapsed().as_secs_f64(), now));
            }
            Ok(())
        })
        .await?;
        let took = begin.elapsed().as_secs_f64();
        let spent: Vec<f64> = self
            .cpu()?
            .iter()
            .zip(&spent)
            .map(|(now, then)| now - then)
            .collect();
        let unshown = self.work_off().await?;
        let written = self.wal().await? - written;
        for id in before {
            self.published.remove(&id);
        }
        let delays = self.delays().await?;
        let (p50, p99) = (quantile(&delays, 0.50), quantile(&delays, 0.99));
        report.row(Row::new(
            format!("at {rate}/s for {took:.0} s: from the post to its webhook"),
            format!("p50 {p50:.0}, p99 {p99:.0} ms"),
        ));
        report.row(
            Row::new(
                "posts that feeds no longer had when they were read",
                unshown.to_string(),
            )
            .goal("0", unshown == 0),
        );
        #[expect(clippy::cast_precision_loss, reason = "a count of posts")]
        let posts = delays.len() as f64;
        let cost = |at: usize| format!("{:.2}", spent[at] * 1_000.0 / posts);
        report.row(
            Row::new(
                "CPU a post: scanner, dispatcher, PostgreSQL, RabbitMQ",
                format!("{}, {}, {}, {} ms", cost(0), cost(1), cost(2), cost(3)),
            )
            .reference("PostgreSQL with this bench's looks"),
        );
        #[expect(clippy::cast_precision_loss, reason = "a count of bytes")]
        let kilobytes = written as f64 / 1_000.0 / posts;
        report.row(
            Row::new(
                "WAL for each Scan and its delivery, statistics included",
                format!("{kilobytes:.1} kB"),
            )
            .goal("<= 6 kB", kilobytes <= 6.0),
        );
        let last = self.kept()?;
        report.row(Row::new(
            "memory: scanner, dispatcher",
            format!("{:.0}, {:.0} MB", last[0], last[1]),
        ));
        kept.retain(|(at, _)| *at > SETTLING.as_secs_f64());
        if kept.len() > 10 {
            for (of, name) in [
                "memory of the scanner",
                "memory of the dispatcher",
                "posts on their way",
            ]
            .into_iter()
            .enumerate()
            {
                let (slope, mean) = line(kept.iter().map(|(at, kept)| (*at, kept[of])));
                let hourly = slope * 3_600.0;
                // Allowed growth per hour: a tenth of the memory, and one second's worth of posts.
                let most = if of < 2 { mean / 10.0 } else { f64::from(rate) };
                report.row(
                    Row::new(
                        format!("{name}: mean, and more in an hour"),
                        format!("{mean:.1}, {hourly:+.1}"),
                    )
                    .goal(format!("<= {most:.1}"), hourly <= most),
                );
            }
        }
        Ok(())
    }

    /// Returns the bytes of write-ahead log that PostgreSQL has written since it was created.
    async fn wal(&mut self) -> Result<i64> {
        #[derive(QueryableByName)]
        struct Written {
            #[diesel(sql_type = BigInt)]
            bytes: i64,
        }
        let written: Written = sql_query(
            "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS bytes",
        )
        .get_result(&mut self.conn)
        .await?;
        Ok(written.bytes)
    }

    /// Returns the MB of scanner and dispatcher, and the number of posts in progress.
    fn kept(&self) -> Result<[f64; 3]> {
        #[expect(clippy::cast_precision_loss, reason = "a count of posts")]
        let waiting = self.waiting() as f64;
        Ok([
            cpu::megabytes(self.scanner.process.id())?,
            self.stack.dispatcher_megabytes()?,
            waiting,
        ])
    }

    /// Returns the delays from each published post to its webhook, in milliseconds, sorted.
    async fn delays(&mut self) -> Result<Vec<f64>> {
        let delays = self.delays_by_time().await?;
        let mut delays: Vec<f64> = delays.into_iter().map(|(_, delay)| delay).collect();
        delays.sort_by(f64::total_cmp);
        Ok(delays)
    }

    /// Returns for each published post its time since the begin, and the delay of its webhook in milliseconds. Each
    /// webhook must arrive once.
    async fn delays_by_time(&mut self) -> Result<Vec<(Duration, f64)>> {
        #[derive(QueryableByName)]
        struct Made {
            #[diesel(sql_type = SqlUuid)]
            namespace_id: Uuid,
            #[diesel(sql_type = SqlUuid)]
            manager_id: Uuid,
            #[diesel(sql_type = SqlUuid)]
            id: Uuid,
            #[diesel(sql_type = Text)]
            post_id: String,
        }
        let made: Vec<Made> = sql_query(
            "SELECT s.namespace_id, s.manager_id, s.id, p.post_id FROM scans AS s \
             JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id",
        )
        .load(&mut self.conn)
        .await?;
        let arrivals = self.receiver.arrivals();
        let mut delays = Vec::with_capacity(self.published.len());
        for made in made {
            let Some(published) = self.published.get(&made.post_id) else {
                continue;
            };
            let scan = ScanName {
                namespace: Id::from_uuid(made.namespace_id),
                manager: Id::from_uuid(made.manager_id),
                scan: Id::from_uuid(made.id),
            };
            let arrival = arrivals.get(&scan.to_string());
            ensure!(
                arrival.is_some_and(|(_, times)| *times == 1),
                "{scan} arrived {arrival:?}"
            );
            let Some((at, _)) = arrival else { continue };
            let (begin, begin_micros) = self.begin;
            let since = at.duration_since(begin).as_secs_f64() * 1_000.0;
            #[expect(clippy::cast_precision_loss, reason = "some minutes in microseconds")]
            let sent = (published - begin_micros) as f64 / 1_000.0;
            let time = Duration::from_secs_f64(sent.max(0.0) / 1_000.0);
            delays.push((time, since - sent));
        }
        ensure!(
            delays.len() == self.published.len(),
            "{} Scans of {} posts",
            delays.len(),
            self.published.len()
        );
        Ok(delays)
    }

    /// Returns the CPU seconds of scanner, dispatcher, PostgreSQL and RabbitMQ.
    fn cpu(&self) -> Result<Vec<f64>> {
        cpu::of_descendants(
            |name| match name {
                "scanner" => 0,
                "webhook-dispatc" => 1,
                name if name.starts_with("postgres") => 2,
                _ => 3,
            },
            4,
        )
    }

    fn stop(mut self) -> Result<()> {
        self.scanner.stop();
        drop(self.conn);
        self.stack.stop()
    }
}

/// Connects each Manager to one of a thousand Connections.
async fn notify(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    managers: &[Uuid],
    url: &str,
) -> Result<()> {
    let sealer = Sealer::new([("bench".to_owned(), *b"0123456789abcdef0123456789abcdef")])?;
    let mut made = Vec::new();
    for _ in 0..CONNECTIONS {
        let draft = CreateConnection {
            nickname: "bench".to_owned(),
            url: url.to_owned(),
            method: Method::Post,
            headers: Headers::default(),
            format: Format::default(),
            max_per_second: None,
            signing_secrets: Vec::new(),
            events: Vec::new(),
            digest: None,
        };
        let connection =
            connections::insert(conn, &sealer, Id::from_uuid(namespace), &draft).await?;
        made.push(connection.name.connection.to_uuid());
    }
    let of: Vec<Uuid> = (0..managers.len())
        .map(|at| made[at % CONNECTIONS])
        .collect();
    sql_query("INSERT INTO manager_notices SELECT $1, m, 0, c FROM unnest($2, $3) AS given (m, c)")
        .bind::<SqlUuid, _>(namespace)
        .bind::<Array<SqlUuid>, _>(managers)
        .bind::<Array<SqlUuid>, _>(of)
        .execute(conn)
        .await?;
    sql_query("ANALYZE").execute(conn).await?;
    Ok(())
}

/// Fits a line by least squares; returns the slope per step and the mean.
fn line(points: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred points")]
    let count = points.clone().count() as f64;
    let mean = |of: fn((f64, f64)) -> f64| points.clone().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|(x, _)| x), mean(|(_, y)| y));
    let both: f64 = points.clone().map(|(a, b)| (a - x) * (b - y)).sum();
    let square: f64 = points.map(|(a, _)| (a - x) * (a - x)).sum();
    (both / square, y)
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn fit_recovers_a_known_line() {
        let points = (0..10).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x)));
        let (slope, mean) = line(points);
        assert!((slope - 2.0).abs() < 1e-9 && (mean - 12.0).abs() < 1e-9);
    }
}
