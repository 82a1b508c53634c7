//! A replay of many deliveries, through two restarts of the dispatcher, during live deliveries.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{
    Options,
    latency::{Stream, share},
    receiver::Receiver,
    stack::Stack,
};
use crate::report::{Report, Row};

const RESTARTS: u32 = 2;
/// Deadline for the replay, at its pace and with restarts.
const PATIENCE: Duration = Duration::from_secs(900);

pub(super) async fn run(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut stream = Stream::start(stack, receiver).await?;
    let live = stream.load.connections(1, &receiver.url("/ok")).await?;
    let live = stream.load.managers(&live).await?;
    let missed = stream.load.connections(1, &receiver.url("/ok")).await?;
    stream.load.history(&missed, options.replayed).await?;
    stack.start_dispatcher().await?;
    stream.send(&live, 3).await?;
    // The same number of Scans as during the replay.
    let mut alone = Vec::new();
    for _ in 0..=RESTARTS {
        alone.push(stream.delays(&live, options.seconds).await?);
    }

    let before = receiver.count();
    let begin = Instant::now();
    let replay = stream.load.replay(missed[0]).await?;
    let mut sent_live = 0;
    let mut beside = Vec::new();
    for stretch in 0..=RESTARTS {
        if stretch > 0 {
            stack.kill_dispatcher();
            stack.start_dispatcher().await?;
            // Skips the pause while the only dispatcher is restarting, which the replay does not cause.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let count = stream.load.total(&live).await?;
        beside.push(stream.delays(&live, options.seconds).await?);
        sent_live += stream.load.total(&live).await? - count;
        ensure!(
            stream.load.replayed(replay).await? < u64::from(options.replayed),
            "the replay ended before it was measured: take more deliveries, or fewer seconds"
        );
    }
    while stream.load.replayed(replay).await? < u64::from(options.replayed)
        || stream.load.waiting().await? > 0
    {
        ensure!(begin.elapsed() < PATIENCE, "the replay does not end");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let took = begin.elapsed();
    let received = receiver.count() - before - u64::try_from(sent_live).context("a count")?;
    let stretches = |delays: &[Vec<f64>]| {
        let p99: Vec<String> = delays
            .iter()
            .map(|delays| format!("{:.1}", share(delays, 99)))
            .collect();
        p99.join(", ")
    };
    let of_stretches = format!(
        "by stretch {}, alone {}",
        stretches(&beside),
        stretches(&alone)
    );
    let [alone, beside] = [alone, beside].map(|delays| {
        let mut all = delays.concat();
        all.sort_by(f64::total_cmp);
        all
    });
    let p99 = [&alone, &beside].map(|delays| share(delays, 99));
    let worse = (p99[1] / p99[0] - 1.0) * 100.0;
    report.row(
        Row::new(
            format!(
                "replay of {}, {RESTARTS} restarts: requests",
                options.replayed
            ),
            format!("{received} in {took:.0?}"),
        )
        .goal(
            "each at least once",
            received >= u64::from(options.replayed),
        ),
    );
    report.row(
        Row::new(
            "live p99 meanwhile",
            format!("{:.1} ms, {worse:+.0} %", p99[1]),
        )
        .goal("<= +20 %", worse <= 20.0)
        .reference(format!(
            "alone {:.1} ms; {of_stretches}; p50 {:.1}, alone {:.1}",
            p99[0],
            share(&beside, 50),
            share(&alone, 50)
        )),
    );
    stream.load.forget().await?;
    stream.stop().await?;
    stack.kill_dispatcher();
    Ok(())
}
