//! `kill -9` of dispatcher, RabbitMQ and PostgreSQL at random moments in a run of deliveries: none is
//! lost, those that come twice were open or not yet recorded, and the rate is back soon after.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use domain::{Id, ScanName};

use super::{Options, load::Load, receiver::Receiver, stack::Stack};
use crate::report::{Report, Row};

/// Requests that may be open or unrecorded when a dispatcher or the database dies.
const AT_RISK: u32 = 512 + 8 * 16;

pub(super) async fn run(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut chance = Chance(options.seed.max(1));
    let mut load = Load::new(stack.url()).await?;
    let connections = load.connections(4, &receiver.url("/ok")).await?;
    let managers = load.managers(&connections).await?;
    receiver.follow(true);
    stack.start_dispatcher().await?;
    let mut sent: Vec<ScanName> = Vec::new();
    let total = usize::try_from(options.deliveries.min(10_000))?;
    let batch = (total / usize::try_from(options.kills + 1)?).max(1);
    let mut late = Vec::new();
    for kill in 0..=options.kills {
        let begin = Instant::now();
        while sent.len() < (usize::try_from(kill)? + 1) * batch {
            let ids: Vec<Id> = (0..20).map(|_| Id::generate()).collect();
            let manager = managers[sent.len() / 20 % managers.len()];
            sent.extend(load.commit(manager, &ids).await?);
        }
        if kill == options.kills {
            late.push(begin);
            break;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(600))).await;
        match chance.below(4) {
            0 => {
                stack.rabbitmq.kill();
                tokio::time::sleep(Duration::from_millis(chance.below(500))).await;
                stack.rabbitmq.restart()?;
            }
            1 => {
                stack.postgres.kill();
                tokio::time::sleep(Duration::from_millis(chance.below(500))).await;
                stack.postgres.restart()?;
                load.reconnect(stack.url()).await?;
            }
            _ => {
                stack.kill_dispatcher();
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
    let twice: u32 = receiver
        .arrivals()
        .values()
        .map(|(_, times)| times - 1)
        .sum();
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
    report.row(Row::new("came twice", format!("{twice}")).goal(
        "only what was open or unrecorded",
        twice <= options.kills * AT_RISK,
    ));
    receiver.follow(false);
    stack.kill_dispatcher();
    load.forget().await
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
