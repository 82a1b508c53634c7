//! Measures one, two and four dispatchers with at most 32 open requests each, and endpoints that take 100 ms. Each
//! dispatcher reaches at most 320 a second, and several reach a multiple of it until the CPU is saturated.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{load::Load, receiver::Receiver, stack::Stack};
use crate::report::{Report, Row};

const IN_FLIGHT: u32 = 32;
const CONNECTIONS: u32 = 64;
const WARM: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(10);
const BEST: f64 = IN_FLIGHT as f64 / 0.1;

pub(super) async fn run(stack: &mut Stack, receiver: &Receiver, report: &mut Report) -> Result<()> {
    stack.set("EARSHOT_DISPATCHER__MAX_IN_FLIGHT", &IN_FLIGHT.to_string());
    let mut before = None;
    for replicas in [1, 2, 4] {
        let mut load = Load::new(stack.url()).await?;
        let url = receiver.url("/100ms");
        let connections = load.connections(CONNECTIONS, &url).await?;
        // More than the dispatchers can deliver.
        let seconds = u32::try_from((WARM + MEASURED).as_secs())? + 5;
        load.backlog(&connections, replicas * 320 * seconds).await?;
        load.settle().await?;
        let mut dispatchers = Vec::new();
        for _ in 0..replicas {
            dispatchers.push(stack.spawn_dispatcher().await?);
        }
        tokio::time::sleep(WARM).await;
        let (begin, cpu, count) = (Instant::now(), stack.cpu()?, receiver.count());
        tokio::time::sleep(MEASURED).await;
        let took = begin.elapsed().as_secs_f64();
        let sent = u32::try_from(receiver.count() - count)?;
        let cores = (stack.cpu()? - cpu) / took;
        for mut dispatcher in dispatchers {
            let _ = dispatcher.kill();
            let _ = dispatcher.wait();
        }
        load.forget().await?;

        let rate = f64::from(sent) / took;
        let row = Row::new(
            format!("{replicas} dispatchers, {IN_FLIGHT} open requests each, 100 ms an answer"),
            format!("{rate:.0}/s"),
        );
        let used = format!(
            "at best {:.0}/s; {cores:.2} cores",
            BEST * f64::from(replicas)
        );
        report.row(match before.replace(rate) {
            None => row.reference(used),
            Some(half) => {
                let grown = rate / half;
                row.goal(">= 1.8 times", grown >= 1.8)
                    .reference(format!("{grown:.2} times; {used}"))
            }
        });
    }
    stack.unset("EARSHOT_DISPATCHER__MAX_IN_FLIGHT");
    Ok(())
}
