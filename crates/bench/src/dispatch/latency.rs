//! Latency from a Scan's commit to its request at a hundred a second: alone, and with endpoints that hang.

use std::time::{Duration, Instant};

use anyhow::Result;
use bus::{EventPublisher, RabbitMq, RabbitMqOptions};
use domain::{Id, ManagerName, ScanName};
use events::ScanCreated;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Options, load::Load, receiver::Receiver, stack::Stack};
use crate::report::{Report, Row};

const PER_SECOND: u32 = 100;

pub(super) async fn run(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut stream = Stream::start(stack, receiver).await?;
    let well = stream.load.connections(2, &receiver.url("/ok")).await?;
    let hung = stream.load.connections(1, &receiver.url("/hang")).await?;
    let well = stream.load.managers(&well).await?;
    let hung = stream.load.managers(&hung).await?;
    stack.start_dispatcher().await?;
    stream.send(&well[..1], 3).await?;

    let (p50, p99) = stream.send(&well[..1], options.seconds).await?;
    report.row(
        Row::new(
            "100/s: Scan committed to request received",
            format!("p50 {p50:.1}, p99 {p99:.1} ms"),
        )
        .goal("p50 <= 5, p99 <= 25 ms", p50 <= 5.0 && p99 <= 25.0),
    );
    if options.wants("hung") {
        // The same number of Scans is committed, so any increase comes from the hanging endpoint.
        let (_, beside_well) = stream.send(&well, options.seconds).await?;
        let both = [well[0], hung[0]];
        let (_, beside) = stream.send(&both, options.seconds).await?;
        report.row(
            Row::new(
                "the same beside a Connection that never answers, p99",
                format!("{beside:.1} ms"),
            )
            .goal(
                "<= 50 ms, <= 2x alone",
                beside <= 50.0 && beside <= 2.0 * p99,
            )
            .reference(format!(
                "alone {p99:.1} ms; beside one that answers {beside_well:.1} ms"
            )),
        );
        many(options, &mut stream, report).await?;
    }
    stream.load.forget().await?;
    stream.stop().await?;
    stack.kill_dispatcher();
    Ok(())
}

/// Measures a thousand Scans a second for three dispatchers.
pub(super) async fn of_three(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    const BATCH: usize = 10;
    let mut stream = Stream::start(stack, receiver).await?;
    let connections = stream.load.connections(64, &receiver.url("/ok")).await?;
    let managers = stream.load.managers(&connections).await?;
    stack.start_dispatcher().await?;
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(stack.spawn_dispatcher().await?);
    }
    stream.send(&managers[..1], 3).await?;
    stream.batch = BATCH;
    let (p50, p99) = stream.send(&managers, options.seconds).await?;
    report.row(
        Row::new(
            "1,000/s with three dispatchers: committed to received",
            format!("p50 {p50:.1}, p99 {p99:.1} ms"),
        )
        .goal("p99 <= 50 ms", p99 <= 50.0),
    );
    for mut dispatcher in others {
        dispatcher.kill()?;
        dispatcher.wait()?;
    }
    stream.load.forget().await?;
    stream.stop().await?;
    stack.kill_dispatcher();
    Ok(())
}

/// Measures a thousand Connections; a hundred of them hang.
async fn many(options: &Options, stream: &mut Stream<'_>, report: &mut Report) -> Result<()> {
    let well = stream
        .load
        .connections(900, &stream.receiver.url("/ok"))
        .await?;
    let hung = stream
        .load
        .connections(100, &stream.receiver.url("/hang"))
        .await?;
    let mut managers = stream.load.managers(&well).await?;
    let hung = stream.load.managers(&hung).await?;
    for (at, manager) in hung.into_iter().enumerate() {
        managers.insert(at * 10, manager);
    }
    let (_, p99) = stream.send(&managers, options.seconds).await?;
    report.row(
        Row::new(
            "1,000 Connections, 100 of them hung: healthy p99",
            format!("{p99:.1} ms"),
        )
        .goal("<= 50 ms", p99 <= 50.0),
    );
    Ok(())
}

/// Commits Scans and publishes their events, as the scanner does.
struct Stream<'a> {
    load: Load,
    receiver: &'a Receiver,
    events: EventPublisher,
    stop: CancellationToken,
    publishing: JoinHandle<()>,
    /// Scans of one transaction.
    batch: usize,
}

impl<'a> Stream<'a> {
    async fn start(stack: &Stack, receiver: &'a Receiver) -> Result<Self> {
        let rabbitmq = RabbitMq::new(&stack.rabbitmq().amqp_url(), RabbitMqOptions::default())?;
        let (events, stop) = (EventPublisher::default(), CancellationToken::new());
        let (own, until) = (events.clone(), stop.clone());
        let publishing = tokio::spawn(async move { own.run(&rabbitmq, &until).await });
        receiver.follow(true);
        Ok(Self {
            load: Load::new(stack.url()).await?,
            receiver,
            events,
            stop,
            publishing,
            batch: 1,
        })
    }

    async fn stop(self) -> Result<()> {
        self.receiver.follow(false);
        self.stop.cancel();
        Ok(self.publishing.await?)
    }

    /// Makes a hundred commits a second for each of up to two Managers, or in turn over all. Returns p50 and p99 of
    /// the delays in milliseconds: of the first Connection's requests with two Managers, and of all requests otherwise.
    async fn send(&mut self, managers: &[ManagerName], seconds: u64) -> Result<(f64, f64)> {
        let each = Duration::from_secs(1) / (PER_SECOND * if managers.len() == 2 { 2 } else { 1 });
        let begin = Instant::now();
        let mut sent: Vec<(ScanName, Instant)> = Vec::new();
        let mut number: u32 = 0;
        while begin.elapsed() < Duration::from_secs(seconds) {
            tokio::time::sleep_until((begin + each * number).into()).await;
            let manager = managers[usize::try_from(number)? % managers.len()];
            let ids: Vec<Id> = (0..self.batch).map(|_| Id::generate()).collect();
            let names = self.load.commit(manager, &ids).await?;
            let committed = Instant::now();
            self.events
                .publish_all(names.iter().map(|name| ScanCreated {
                    name: *name,
                    create_time: name.scan.time(),
                }));
            sent.extend(names.into_iter().map(|name| (name, committed)));
            number += 1;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        // Requests to a hanging endpoint are delayed inevitably; they are few among many, or identified.
        let hung = |name: &ScanName| match managers.len() {
            2 => name.manager != managers[0].manager,
            1 => false,
            _ => managers
                .iter()
                .position(|manager| manager.manager == name.manager)
                .is_some_and(|at| at % 10 == 0),
        };
        let arrivals = self.receiver.arrivals();
        let mut delays: Vec<f64> = sent
            .iter()
            .filter(|(name, _)| !hung(name))
            .map(|(name, committed)| match arrivals.get(&name.to_string()) {
                Some((at, _)) => at.saturating_duration_since(*committed).as_secs_f64() * 1e3,
                None => f64::INFINITY,
            })
            .collect();
        delays.sort_by(f64::total_cmp);
        Ok((share(&delays, 50), share(&delays, 99)))
    }
}

/// Returns the given percentile of sorted values.
fn share(sorted: &[f64], percent: usize) -> f64 {
    let at = sorted.len() * percent / 100;
    let last = sorted.len().saturating_sub(1);
    sorted.get(at.min(last)).copied().unwrap_or(f64::NAN)
}
