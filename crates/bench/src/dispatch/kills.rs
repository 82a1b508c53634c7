//! SIGKILL of dispatcher, RabbitMQ and PostgreSQL at random moments during a run of deliveries: no delivery is lost,
//! duplicates were in progress or not yet recorded, and the rate recovers soon after.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use domain::{Id, ManagerName, ScanName};

use super::{Options, latency::Stream, receiver::Receiver, stack::Stack};
use crate::report::{Report, Row};

/// Number of Scans at once, for the rate.
const BURST: usize = 2_000;

pub(super) async fn run(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut chance = Chance(options.seed.max(1));
    let mut stream = Stream::start(stack, receiver).await?;
    let connections = stream.load.connections(4, &receiver.url("/ok")).await?;
    let managers = stream.load.managers(&connections).await?;
    stack.start_dispatcher().await?;
    burst(&mut stream, receiver, &managers).await?;
    let full = burst(&mut stream, receiver, &managers).await?;
    let mut sent: Vec<ScanName> = Vec::new();
    // Number of kills of a dispatcher while the request of a Scan was in progress or unrecorded, by Scan.
    let mut at_risk: HashMap<String, u32> = HashMap::new();
    let total = usize::try_from(options.deliveries.min(10_000))?;
    let batch = (total / usize::try_from(options.kills + 1)?).max(1);
    for kill in 0..=options.kills {
        while sent.len() < (usize::try_from(kill)? + 1) * batch {
            let ids: Vec<Id> = (0..20).map(|_| Id::generate()).collect();
            let manager = managers[sent.len() / 20 % managers.len()];
            sent.extend(stream.load.commit(manager, &ids).await?);
            stream.wake();
        }
        if kill == options.kills {
            break;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(600))).await;
        match chance.below(4) {
            0 => {
                stack.rabbitmq().kill();
                tokio::time::sleep(Duration::from_millis(chance.below(500))).await;
                stack.rabbitmq().restart()?;
            }
            1 => {
                stack.postgres.kill();
                tokio::time::sleep(Duration::from_millis(chance.below(500))).await;
                stack.postgres.restart()?;
                stream.load.reconnect(stack.url()).await?;
            }
            _ => {
                stack.kill_dispatcher();
                for scan in stream.load.in_flight().await? {
                    *at_risk.entry(scan.to_string()).or_default() += 1;
                }
                tokio::time::sleep(Duration::from_millis(chance.below(500))).await;
                stack.start_dispatcher().await?;
            }
        }
    }
    let restarted = Instant::now();
    let missing = |receiver: &Receiver| {
        let arrivals = receiver.arrivals();
        let missing = sent
            .iter()
            .filter(|name| !arrivals.contains_key(&name.to_string()));
        missing.count()
    };
    while missing(receiver) > 0 {
        ensure!(
            restarted.elapsed() < Duration::from_secs(60),
            "{} of {} Scans are lost",
            missing(receiver),
            sent.len()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = restarted.elapsed();
    let rate = burst(&mut stream, receiver, &managers).await?;
    let full_after = restarted.elapsed();
    let (mut twice, mut without_reason) = (0, 0);
    for (scan, (_, times)) in receiver.arrivals().iter() {
        let more = times - 1;
        twice += more;
        without_reason += more.saturating_sub(at_risk.get(scan).copied().unwrap_or_default());
    }
    report.row(
        Row::new(
            format!("{} deliveries, {} kills: lost", sent.len(), options.kills),
            "0",
        )
        .goal("0", true)
        .reference(format!("seed {}", options.seed)),
    );
    report.row(
        Row::new(
            "all are there after the last restart",
            format!("{took:.1?}"),
        )
        .goal("<= 10 s", took <= Duration::from_secs(10)),
    );
    let share = rate / full * 100.0;
    report.row(
        Row::new(
            "rate after the last restart",
            format!("{rate:.0}/s, {share:.0} %, after {full_after:.1?}"),
        )
        .goal(
            ">= 80 % within 10 s",
            share >= 80.0 && full_after <= Duration::from_secs(10),
        )
        .reference(format!("before {full:.0}/s")),
    );
    report.row(
        Row::new(
            "came twice; neither open nor unrecorded at a kill",
            format!("{twice}; {without_reason}"),
        )
        .goal("any; 0", without_reason == 0),
    );
    stream.load.forget().await?;
    stream.stop().await?;
    stack.kill_dispatcher();
    Ok(())
}

/// Publishes many Scans at once; returns deliveries per second, from the first request to the last.
async fn burst(
    stream: &mut Stream<'_>,
    receiver: &Receiver,
    managers: &[ManagerName],
) -> Result<f64> {
    let mut names = Vec::new();
    for (at, manager) in managers.iter().enumerate() {
        let count = BURST / managers.len() + usize::from(at < BURST % managers.len());
        let ids: Vec<Id> = (0..count).map(|_| Id::generate()).collect();
        names.extend(stream.load.commit(*manager, &ids).await?);
    }
    stream.wake();
    let begin = Instant::now();
    loop {
        let times: Vec<Instant> = {
            let arrivals = receiver.arrivals();
            let times = names
                .iter()
                .filter_map(|name| arrivals.get(&name.to_string()));
            times.map(|(at, _)| *at).collect()
        };
        if let (true, Some(first), Some(last)) = (
            times.len() == names.len(),
            times.iter().min(),
            times.iter().max(),
        ) {
            let count = u32::try_from(names.len())?;
            return Ok(f64::from(count) / (*last - *first).as_secs_f64());
        }
        ensure!(
            begin.elapsed() < Duration::from_secs(60),
            "{} of a burst of {} arrived",
            times.len(),
            names.len()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// xorshift: the same moments for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
