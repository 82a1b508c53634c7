//! Throughput, cost and latency of deliveries.
//!
//! Uses a private PostgreSQL and RabbitMQ, the release binary of the dispatcher in a separate process, and receivers in
//! this one, whose time is not counted. CPU seconds are those of dispatcher, PostgreSQL and RabbitMQ together, from
//! /proc, so that other load on the machine does not distort them.

pub(crate) mod cpu;
mod latency;
pub(crate) mod load;
pub(crate) mod receiver;
pub(crate) mod stack;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use crate::report::{Report, Row};
use load::Load;
use receiver::Receiver;
use stack::Stack;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of deliveries in the backlog
    #[arg(long, default_value_t = 20_000)]
    deliveries: u32,
    /// Number of Connections that share the backlog
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Length of each run at a given rate, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Only these parts: drain, stored, latency, hung, three, memory, limit
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Directory of the servers during the run
    #[arg(long, default_value = "target/bench/dispatch-servers")]
    home: PathBuf,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?
        .block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Report> {
    let mut report = Report::new("dispatch");
    let mut stack = Stack::start(&options.home).await?;
    let receiver = Receiver::start().await?;
    if options.wants("memory") {
        stack.start_dispatcher().await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let idle = stack.dispatcher_megabytes()?;
        report
            .row(Row::new("memory, idle", format!("{idle:.0} MB")).goal("<= 64 MB", idle <= 64.0));
        stack.kill_dispatcher();
        open_requests(&mut stack, &receiver, &mut report).await?;
    }
    if options.wants("drain") {
        drain(options, &mut stack, &receiver, &mut report).await?;
    }
    if options.wants("stored") {
        without_events(options, &mut stack, &receiver, &mut report).await?;
    }
    if options.wants("latency") || options.wants("hung") {
        latency::run(options, &mut stack, &receiver, &mut report).await?;
    }
    if options.wants("three") {
        latency::of_three(options, &mut stack, &receiver, &mut report).await?;
    }
    if options.wants("limit") {
        rate_limit(&mut stack, &receiver, &mut report).await?;
    }
    report.note(format!(
        "{} deliveries to {} Connections; CPU of dispatcher, PostgreSQL and RabbitMQ together",
        options.deliveries, options.connections
    ));
    stack.stop()?;
    Ok(report)
}

/// Measures a backlog that waits in the database when the dispatcher starts.
async fn drain(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut load = Load::new(stack.url()).await?;
    let connections = load
        .connections(options.connections, &receiver.url("/ok"))
        .await?;
    load.backlog(&connections, options.deliveries).await?;
    let before = receiver.count();
    let (spent, took) = spend(stack, receiver, before, options.deliveries).await?;
    let rate = f64::from(options.deliveries) / took.as_secs_f64();
    let cpu = spent * 1_000.0 / f64::from(options.deliveries);
    report.row(
        Row::new("CPU per 1,000, draining a backlog", format!("{cpu:.3} s"))
            .goal("<= 0.30 s", cpu <= 0.30)
            .reference(stack.shares()),
    );
    report.row(
        Row::new("rate, draining", format!("{rate:.0}/s")).goal(">= 4,000/s", rate >= 4_000.0),
    );
    load.all_succeeded().await
}

/// Measures stored Scans that have no event: the dispatcher finds them in the database.
async fn without_events(
    options: &Options,
    stack: &mut Stack,
    receiver: &Receiver,
    report: &mut Report,
) -> Result<()> {
    let mut load = Load::new(stack.url()).await?;
    let connections = load
        .connections(options.connections, &receiver.url("/ok"))
        .await?;
    let managers = load.managers(&connections).await?;
    load.scans(&managers, options.deliveries).await?;
    let before = receiver.count();
    let (spent, took) = spend(stack, receiver, before, options.deliveries).await?;
    let rate = f64::from(options.deliveries) / took.as_secs_f64();
    let cpu = spent * 1_000.0 / f64::from(options.deliveries);
    report.row(
        Row::new(
            "CPU per 1,000, from stored Scan without event",
            format!("{cpu:.3} s, {rate:.0}/s"),
        )
        .goal("<= 0.90 s", cpu <= 0.90)
        .reference(stack.shares()),
    );
    load.all_succeeded().await
}

/// Starts the dispatcher and waits until this many more requests were received and recorded. Returns CPU seconds since
/// its first request, and the elapsed time.
async fn spend(
    stack: &mut Stack,
    receiver: &Receiver,
    before: u64,
    deliveries: u32,
) -> Result<(f64, Duration)> {
    stack.start_dispatcher().await?;
    wait_for("the first request", Duration::from_secs(30), || {
        receiver.count() > before
    })
    .await?;
    let (begin, cpu) = (Instant::now(), stack.cpu()?);
    let all = before + u64::from(deliveries);
    wait_for("all requests", Duration::from_secs(180), || {
        receiver.count() >= all
    })
    .await?;
    let took = begin.elapsed();
    // The last request is recorded within 50 ms.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let spent = stack.cpu()? - cpu;
    ensure!(receiver.count() == all, "no request is made twice");
    stack.kill_dispatcher();
    Ok((spent, took))
}

/// Measures a thousand requests that stay unanswered.
async fn open_requests(stack: &mut Stack, receiver: &Receiver, report: &mut Report) -> Result<()> {
    let mut load = Load::new(stack.url()).await?;
    // They are answered at first, so that no lane is new when its endpoint hangs.
    let connections = load
        .connections(600, &receiver.url("/ok-then-hang"))
        .await?;
    receiver.hang(false);
    load.backlog(&connections, 600 * 10).await?;
    stack.set("EARSHOT_DISPATCHER__MAX_IN_FLIGHT", "1000");
    stack.start_dispatcher().await?;
    let before = receiver.count();
    wait_for("the lanes are wide", Duration::from_secs(60), || {
        receiver.count() >= before + 6_000
    })
    .await?;
    receiver.hang(true);
    load.backlog(&connections, 600 * 4).await?;
    let mut most = 0.0_f64;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(8) {
        most = most.max(stack.dispatcher_megabytes()?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let open = receiver.most_hung();
    report.row(
        Row::new("open requests, of 1,000 that may be", format!("{open}"))
            .goal("never above", open <= 1_000),
    );
    report.row(
        Row::new(
            format!("memory with {open} open requests"),
            format!("{most:.0} MB"),
        )
        .goal("<= 128 MB", most <= 128.0),
    );
    stack.kill_dispatcher();
    stack.unset("EARSHOT_DISPATCHER__MAX_IN_FLIGHT");
    receiver.hang(false);
    load.forget().await
}

/// Compares a backlog of 100,000 that is limited to ten a second with a tiny backlog: sending costs the same, so the
/// difference is the cost of waiting.
async fn rate_limit(stack: &mut Stack, receiver: &Receiver, report: &mut Report) -> Result<()> {
    let (_, few, few_shares) = at_ten_a_second(stack, receiver, 1_000).await?;
    let (rate, many, many_shares) = at_ten_a_second(stack, receiver, 100_000).await?;
    report.row(
        Row::new("10/s, as sent", format!("{rate:.2}/s"))
            .goal("within 5 %", (9.5..=10.5).contains(&rate)),
    );
    let more = many - few;
    report.row(
        Row::new(
            "100,000 behind that limit, more than 1,000 behind it",
            format!("{more:.1} % of a core"),
        )
        .goal("<= 2 %", more <= 2.0)
        .reference(format!(
            "all processes {many:.1} %: {many_shares}; {few:.1} %: {few_shares}"
        )),
    );
    Ok(())
}

/// Returns the requests sent per second, and the CPU use of all processes together, in percent of one core.
async fn at_ten_a_second(
    stack: &mut Stack,
    receiver: &Receiver,
    backlog: u32,
) -> Result<(f64, f64, String)> {
    const SECONDS: u64 = 20;
    let mut load = Load::new(stack.url()).await?;
    let connections = load.connections(1, &receiver.url("/ok")).await?;
    load.limit(10).await?;
    load.backlog(&connections, backlog).await?;
    load.settle().await?;
    stack.start_dispatcher().await?;
    // Skips the start of the dispatcher, and requests that are sent in advance.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (begin, cpu, before) = (Instant::now(), stack.cpu()?, receiver.count());
    tokio::time::sleep(Duration::from_secs(SECONDS)).await;
    let took = begin.elapsed().as_secs_f64();
    let sent = u32::try_from(receiver.count() - before).context("not so many")?;
    let busy = (stack.cpu()? - cpu) / took * 100.0;
    stack.kill_dispatcher();
    load.forget().await?;
    Ok((f64::from(sent) / took, busy, stack.shares()))
}

async fn wait_for(what: &str, patience: Duration, done: impl Fn() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !done() {
        ensure!(
            begin.elapsed() < patience,
            "{what}: not within {patience:?}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}
