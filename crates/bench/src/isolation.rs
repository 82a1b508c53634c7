//! Latency of one account's requests, feeds and webhooks while another account does its worst.
//!
//! Uses a private PostgreSQL and RabbitMQ and one replica of each service, with the default quotas and limits. The
//! [`victim`] uses the product at an even rate all the time. The [`hostile`] account attacks in one dimension after the
//! other, then in those that take time together; each time it is a new account, and what it created is deleted afterwards.
//! Both share one platform, so that they compete for the same capacity. Next to latencies, each service's peak memory is
//! compared with its limit in the chart.

mod account;
mod api;
mod attacks;
mod changes;
mod dimension;
mod heavy;
mod hostile;
mod memory;
mod product;
mod reasons;
mod site;
mod tally;
#[cfg(test)]
mod tests;
mod victim;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;
use private_servers::postgres::Options as Server;

use crate::report::{Report, Row};
use dimension::{Dimension, Size};
use hostile::Hostile;
use product::Product;
use site::Site;
use tally::Tally;
use victim::{Latencies, Observed, Victim};

/// A latency below this is good, regardless of the latency without an attack.
const GOOD_MILLIS: f64 = 100.0;
const TIMES_ALONE: f64 = 2.0;
const WARM_UP: Duration = Duration::from_secs(5);
/// Longest time to create what an attack needs.
const PREPARATION: Duration = Duration::from_secs(15);
/// Time from the start of an attack to the measurement.
const BUILD_UP: Duration = Duration::from_secs(2);
/// Longest wait after an attack.
const RECOVERY: Duration = Duration::from_secs(30);
/// All operations must be as before for this long, which is time for six applies. They recover last.
const CALM: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Length of each measurement, in seconds, at most 18: one for each attack, and one without it before, between and
    /// after them
    #[arg(long, default_value_t = 18, value_parser = clap::value_parser!(u64).range(1..=18))]
    seconds: u64,
    /// Only these attacks
    #[arg(long, value_delimiter = ',')]
    only: Vec<Dimension>,
    /// Directory of the servers during the run
    #[arg(long, default_value = "target/bench/isolation-servers")]
    home: PathBuf,
}

impl Options {
    fn attacks(&self) -> Vec<Dimension> {
        if !self.only.is_empty() {
            return self.only.clone();
        }
        let all = [Dimension::All];
        [&Dimension::BUSY[..], &all, &Dimension::HEAVY].concat()
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Report> {
    let mut report = Report::new("isolation");
    let span = Duration::from_secs(options.seconds);
    let product = Product::start(&options.home, &Server::durable()).await?;
    let site = Site::start().await?;
    let url = product.database_url();
    let victim = Victim::new(product.api(), site.clone(), &url).await?;
    victim.observe(WARM_UP).await?;
    let mut before = victim.observe(span).await?;
    for dimension in options.attacks() {
        let name = name(dimension);
        let account = format!("hostile-{name}");
        let (api, site) = (product.api(), site.clone());
        let mut hostile = Hostile::new(api, site, &url, &account, Size::LONG).await?;
        memory::reset(&product)?;
        if !hostile.begin(dimension, PREPARATION).await? {
            report.note(format!("{name}: began before all that it needs was ready"));
        }
        tokio::time::sleep(BUILD_UP).await;
        let attacked = victim.observe(span).await?;
        let peaks = memory::peaks(&product)?;
        report.row(memory::row(&name, &peaks));
        if peaks.iter().any(memory::Peak::has_ended) {
            report.note(format!(
                "{name}: ended a service, so no further attack was made"
            ));
            break;
        }
        let requests = requests(hostile.tally());
        if let Err(error) = hostile.collect_reasons().await {
            report.note(format!(
                "{name}: the account cannot ask what is wrong: {error:#}"
            ));
        }
        let reasons = hostile.tally().reasons();
        let is_gone = hostile.end().await?;
        if !(is_gone && is_over(&victim, &before).await?) {
            report.note(format!(
                "{name}: its effects lasted into the next measurement"
            ));
        }
        let after = victim.observe(span).await?;
        compare(&mut report, &name, [&before, &after], &attacked);
        report.row(Row::new(format!("{name}: hostile requests"), requests));
        report.row(Row::new(format!("{name}: told"), reasons));
        before = after;
    }
    let counts = before
        .operations()
        .map(|(operation, latencies)| format!("{operation} {}", latencies.count()));
    report.note(format!(
        "operations in each measurement of {} s: {}",
        options.seconds,
        counts.join(", ")
    ));
    report.note(format!(
        "most hostile requests open at a time: {} polls of slow feeds, {} of silent pages, {} to an endpoint that hangs",
        site.most_open("slow"),
        site.most_open("silent"),
        site.most_open("/hang"),
    ));
    if cfg!(debug_assertions) {
        report.note("built without optimisation");
    }
    drop(victim);
    product.stop()?;
    Ok(report)
}

/// Waits until all operations are as before an attack. Returns false if they are not after a while.
async fn is_over(victim: &Victim, alone: &Observed) -> Result<bool> {
    let begin = Instant::now();
    while begin.elapsed() < RECOVERY {
        let observed = victim.observe(CALM).await?;
        let mut pairs = alone.operations().into_iter().zip(observed.operations());
        if pairs.all(|((_, before), (_, now))| is_met(before.quantile(99), now)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Adds a row for each operation. The reference was measured without an attack right before and right after it,
/// because the speed of the machine changes within minutes. The better of the two counts: the other may have had the rest of
/// an attack, and the p99 of so few operations is nearly their slowest.
fn compare(report: &mut Report, attack: &str, alone: [&Observed; 2], attacked: &Observed) {
    let alone = alone.map(Observed::operations);
    for (at, (operation, now)) in attacked.operations().into_iter().enumerate() {
        let alone = alone[0][at].1.better(alone[1][at].1);
        let reference = format!("alone {}", text(alone));
        let before = alone.quantile(99);
        let ratio = now.quantile(99) / before;
        report.row(
            Row::new(
                format!("{attack}: {operation}"),
                format!("{}, {ratio:.1}x", text(now)),
            )
            .goal("p99 <= 2x alone or < 100 ms", is_met(before, now))
            .reference(reference),
        );
    }
}

/// Returns whether the goal is met, given the p99 alone.
fn is_met(before: f64, now: &Latencies) -> bool {
    let p99 = now.quantile(99);
    now.failed == 0 && (p99 < GOOD_MILLIS || p99 <= TIMES_ALONE * before)
}

fn text(latencies: &Latencies) -> String {
    let (p50, p99) = (latencies.quantile(50), latencies.quantile(99));
    let text = format!("p50 {p50:.1}, p99 {p99:.1} ms");
    match latencies.failed {
        0 => text,
        failed => format!("{text}, {failed} failed"),
    }
}

fn requests(tally: &Tally) -> String {
    let (accepted, refused) = (tally.accepted(), tally.refused());
    format!(
        "{accepted} accepted, {refused} refused, {} failed",
        tally.failed()
    )
}

fn name(dimension: Dimension) -> String {
    let value = dimension.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
