//! Measures deliveries while RabbitMQ is away, and after it is back.
//!
//! Two dispatchers run, which find the Scans in the database then. The rate before the outage is the reference.

use std::{
    process::Child,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{Bench, Options};
use crate::{
    end_to_end::quantile,
    report::{Report, Row},
};

/// Length of the reference before the outage, and of the time after it.
const AROUND: Duration = Duration::from_mins(1);
/// Period that a rate is measured in.
const WINDOW: Duration = Duration::from_secs(10);
/// Windows at the start of the outage: Scans wait there until the sweep finds them overdue.
const DETECTION: usize = 1;
const MAX_LATE: Duration = Duration::from_secs(10);

/// A dispatcher next to the stack's.
struct Second(Child);

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Deliveries of one phase.
struct Phase {
    /// Deliveries a second in each full window.
    windows: Vec<f64>,
    per_second: f64,
}

pub(in crate::end_to_end) async fn measure(options: &Options, seconds: u32) -> Result<Report> {
    let rate = options.posts_per_second;
    let mut bench = Bench::start(options).await?;
    let second = Second(bench.stack.spawn_dispatcher().await?);
    let mut report = Report::new("e2e");

    let before = bench.phase(rate, AROUND).await?;
    bench.stack.rabbitmq().kill();
    println!("RabbitMQ is away");
    let without = bench
        .phase(rate, Duration::from_secs(seconds.into()))
        .await?;
    let restart = bench.stack.restart_rabbitmq();
    let back = bench.begin.0.elapsed();
    println!("RabbitMQ comes back");
    bench.phase(rate, AROUND).await?;
    restart.await??;
    let unshown = bench.work_off().await?;
    drop(second);

    let share = |of: f64| of / before.per_second * 100.0;
    report.row(Row::new(
        format!("{rate} posts/s, two dispatchers: deliveries with RabbitMQ"),
        format!("{:.0}/s", before.per_second),
    ));
    report.row(
        Row::new(
            format!("without RabbitMQ for {seconds} s"),
            format!(
                "{:.0}/s, {:.0} %",
                without.per_second,
                share(without.per_second)
            ),
        )
        .goal(">= 90 %", share(without.per_second) >= 90.0),
    );
    let windows = without.windows.get(DETECTION..).unwrap_or_default();
    let lowest = windows.iter().copied().reduce(f64::min).unwrap_or(f64::NAN);
    report.row(
        Row::new(
            format!(
                "the slowest {} s of that, from the second on",
                WINDOW.as_secs()
            ),
            format!("{lowest:.0}/s, {:.0} %", share(lowest)),
        )
        .goal(">= 90 %", share(lowest) >= 90.0),
    );
    report.row(
        Row::new(
            "posts that feeds no longer had when they were read",
            unshown.to_string(),
        )
        .goal("0", unshown == 0),
    );
    let delays = bench.delays_by_time().await?;
    let is_after = |at: Duration| at >= back;
    let of = |wanted: &dyn Fn(Duration) -> bool| {
        let delays = delays.iter().filter(|(at, _)| wanted(*at));
        let mut delays: Vec<f64> = delays.map(|(_, delay)| *delay).collect();
        delays.sort_by(f64::total_cmp);
        delays
    };
    let told = |delays: &[f64]| {
        let at = |part| quantile(delays, part);
        format!(
            "p50 {:.0}, p99 {:.0}, longest {:.0} ms",
            at(0.50),
            at(0.99),
            at(1.0)
        )
    };
    let is_before = |at: Duration| at < AROUND;
    let during = of(&|at| !is_before(at) && !is_after(at));
    let after = of(&is_after);
    report.row(Row::new(
        "from the post to its webhook, before",
        told(&of(&is_before)),
    ));
    report.row(Row::new("the same without RabbitMQ", told(&during)));
    let late = quantile(&after, 1.0);
    report.row(
        Row::new("the same after RabbitMQ is back", told(&after)).goal(
            format!("longest <= {} s", MAX_LATE.as_secs()),
            Duration::from_secs_f64(late / 1_000.0) <= MAX_LATE,
        ),
    );
    report.row(Row::new(
        "posts, each delivered once",
        delays.len().to_string(),
    ));
    bench.stop()?;
    Ok(report)
}

impl Bench {
    async fn phase(&mut self, rate: u32, length: Duration) -> Result<Phase> {
        let (begin, first) = (Instant::now(), self.receiver.count());
        let mut windows = Vec::new();
        let (mut last, mut since) = (first, begin);
        self.publish(rate, length, async |bench: &mut Self| {
            if since.elapsed() >= WINDOW {
                let now = bench.receiver.count();
                #[expect(clippy::cast_precision_loss, reason = "a count of deliveries")]
                let rate = (now - last) as f64 / since.elapsed().as_secs_f64();
                println!(
                    "{:.0?}: {rate:.0} deliveries/s, {} posts in progress",
                    begin.elapsed(),
                    bench.waiting()
                );
                windows.push(rate);
                (last, since) = (now, Instant::now());
            }
            Ok(())
        })
        .await?;
        #[expect(clippy::cast_precision_loss, reason = "a count of deliveries")]
        let all = (self.receiver.count() - first) as f64;
        Ok(Phase {
            windows,
            per_second: all / begin.elapsed().as_secs_f64(),
        })
    }
}
