//! Measures lists and creates over HTTP, and compares them with pgbench running the same SQL on the same cores.
//!
//! A private PostgreSQL holds a million Scans. The gateway is the release binary from the same directory, in a separate
//! process. pgbench runs the statements that the gateway ran, read from `pg_stat_activity`. Load and reference take
//! turns, so that other activity on the machine affects both.

mod cpu;
mod gateway;
mod load;
mod pgbench;
mod seed;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use private_servers::postgres::{Options as Server, Postgres};

use crate::report::{Report, Row};
use gateway::Gateway;
use load::Request;
use pgbench::PgBench;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Scans in the table
    #[arg(long, default_value_t = 1_000_000)]
    scans: u32,
    /// Connections to the gateway, and of pgbench to the database
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Length of each turn of load or reference, in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Turns of each
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Directory of the servers during the run
    #[arg(long, default_value = "target/bench/api-servers")]
    home: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    // One thread: the load is light, and the cores are for the measured processes.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(options))
}

async fn measure(options: &Options) -> Result<Report> {
    let mut report = Report::new("api");
    let mut server = Postgres::start(&options.home, &Server::throwaway())?;
    eprintln!("{}: seeding {} Scans", server.url(), options.scans);
    let seeded = seed::run(&server.url(), options.scans).await?;
    let gateway = Gateway::start(&server.url(), &options.home)?;
    gateway.wait().await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = gateway.resident_mib()?;
    report.row(
        Row::new("idle gateway", format!("{idle:.0} MiB"))
            .goal("<= 40 MB", idle * 1.048_576 <= 40.0),
    );

    lists(options, &seeded, &gateway, &server.url(), &mut report).await?;
    depth(&seeded, &gateway, &mut report).await?;
    creates(options, &seeded, &gateway, &server.url(), &mut report).await?;

    tokio::time::sleep(Duration::from_secs(3)).await;
    let after = gateway.resident_mib()?;
    report.row(Row::new(
        "gateway after the load",
        format!("{after:.0} MiB"),
    ));
    report.note(format!(
        "{} Scans, {} clients, {} turns of {} s each; the median turn is reported",
        options.scans, options.clients, options.turns, options.seconds
    ));
    drop(gateway);
    server.kill();
    remove(&options.home)?;
    Ok(report)
}

/// Measures a page of five of any Manager: at full speed compared with pgbench, and at half of it.
async fn lists(
    options: &Options,
    seeded: &seed::Seeded,
    gateway: &Gateway,
    url: &str,
    report: &mut Report,
) -> Result<()> {
    let requests: Vec<Request> = seeded
        .managers
        .iter()
        .map(|manager| gateway.get(&seeded.key, &format!("/v1/{manager}/scans")))
        .collect();
    let span = Duration::from_secs(options.seconds);
    // Warms up plans, caches and the JIT of both.
    load::closed(
        gateway.address(),
        &requests,
        options.clients,
        Duration::from_secs(2),
    )
    .await?;
    let seen = pgbench::seen(url, "FROM scans AS s").await?;
    let script = seeded.bind(&seen)?;
    let pgbench = PgBench::new(url, &options.home, "list", &script)?;
    pgbench.run(options.clients, Duration::from_secs(2))?;

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_cpu, mut their_cpu) = (Vec::new(), Vec::new());
    // The gateway, pgbench and the load are descendants of this process; the sessions belong to the server.
    let everybody = [std::process::id(), server_id(&options.home)?];
    for _ in 0..options.turns {
        let begin = cpu::used(&everybody)?;
        let rate = pgbench.run(options.clients, span)?;
        let between = cpu::used(&everybody)?;
        let found = load::closed(gateway.address(), &requests, options.clients, span).await?;
        let end = cpu::used(&everybody)?;
        their_cpu.push((between - begin) / (rate * span.as_secs_f64()) * 1e6);
        our_cpu.push((end - between) / (found.rate * span.as_secs_f64()) * 1e6);
        theirs.push(rate);
        ours.push(found.rate);
    }
    let (our_cpu, their_cpu) = (median(our_cpu), median(their_cpu));
    let (ours, theirs) = (median(ours), median(theirs));
    let share = ours / theirs * 100.0;
    report.row(
        Row::new(
            "list of Scans, page of 5",
            format!("{ours:.0}/s, {share:.0} %"),
        )
        .goal(">= 50 % of pgbench", share >= 50.0)
        .reference(format!("pgbench {theirs:.0}/s")),
    );

    // The ratio of the rates that would result on otherwise idle cores.
    report.row(
        Row::new(
            "CPU of a list, load and database included",
            format!("{our_cpu:.0} us, {:.0} %", their_cpu / our_cpu * 100.0),
        )
        .reference(format!("pgbench {their_cpu:.0} us")),
    );

    let half = ours / 2.0;
    let mut delays = Vec::new();
    for _ in 0..options.turns {
        let found = load::open(
            gateway.address(),
            &requests,
            options.clients * 4,
            half,
            span,
        )
        .await?;
        delays.push((found.p50, found.p99));
    }
    let p50 = median(delays.iter().map(|delay| delay.0).collect());
    let p99 = median(delays.iter().map(|delay| delay.1).collect());
    report.row(
        Row::new(
            format!("the same at {half:.0}/s"),
            format!("p50 {p50:.1} ms, p99 {p99:.1} ms"),
        )
        .goal("p99 < 10 ms", p99 < 10.0),
    );
    Ok(())
}

/// Measures the first page and the thousandth, in turns.
async fn depth(seeded: &seed::Seeded, gateway: &Gateway, report: &mut Report) -> Result<()> {
    const TURNS: usize = 2_000;
    let path = format!("/v1/{}/scans", seeded.deepest);
    let mut token = String::new();
    // A token marks a position, regardless of the page size: fifty pages of a hundred are a thousand of five.
    for _ in 0..50 {
        let request = gateway.get(
            &seeded.key,
            &format!("{path}?pageSize=100&pageToken={token}"),
        );
        let page: serde_json::Value =
            serde_json::from_slice(&load::one(gateway.address(), &request).await?)?;
        token = page["nextPageToken"]
            .as_str()
            .context("too few Scans for a thousand pages")?
            .to_owned();
    }
    let first = gateway.get(&seeded.key, &path);
    let deep = gateway.get(&seeded.key, &format!("{path}?pageToken={token}"));
    let (first, deep) = load::in_turns(gateway.address(), [&first, &deep], TURNS).await?;
    let ratio = deep / first;
    report.row(
        Row::new("page 1,000", format!("{deep:.2} ms, {ratio:.2}x"))
            .goal("<= 1.2x of page 1", ratio <= 1.2)
            .reference(format!("page 1: {first:.2} ms")),
    );
    Ok(())
}

async fn creates(
    options: &Options,
    seeded: &seed::Seeded,
    gateway: &Gateway,
    url: &str,
    report: &mut Report,
) -> Result<()> {
    let requests = [gateway.post(
        &seeded.key,
        &format!("/v1/{}/managers", seeded.namespace),
        seed::MANAGER,
    )];
    let span = Duration::from_secs(options.seconds);
    let pgbench = PgBench::new(url, &options.home, "create", &seeded.create())?;
    pgbench.run(options.clients, Duration::from_secs(1))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.turns {
        theirs.push(pgbench.run(options.clients, span)?);
        ours.push(
            load::closed(gateway.address(), &requests, options.clients, span)
                .await?
                .rate,
        );
    }
    let (ours, theirs) = (median(ours), median(theirs));
    report.row(
        Row::new(
            "create Manager",
            format!("{ours:.0}/s, {:.0} %", ours / theirs * 100.0),
        )
        .reference(format!("pgbench {theirs:.0}/s")),
    );
    Ok(())
}

/// Returns the process id of the server with the directory `home`.
fn server_id(home: &Path) -> Result<u32> {
    let text = std::fs::read_to_string(home.join("data/postmaster.pid"))?;
    let first = text.lines().next().unwrap_or_default();
    first
        .trim()
        .parse()
        .context("postmaster.pid contains no process id")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn remove(home: &Path) -> Result<()> {
    ensure!(home.join("data").is_dir(), "not a server's home");
    std::fs::remove_dir_all(home).context("remove the servers' home")
}
