//! Cost of reading Bluesky's stream, and a check that nothing is lost when it breaks.
//!
//! The platforms' simulator, in a separate process, sends numbered posts at a rate. This process reads them as the
//! scanner does: one poll after the other, each cursor through its JSON. All connections are closed twice during the
//! run. The kernel reports the CPU time of this process, which does nothing else.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use domain::Timestamp;
use platforms::{Adapter, Cursor, PollLimits, Unlimited, bluesky::Jetstream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::report::{Report, Row};

/// A tick of `/proc/<pid>/stat`: the same on every Linux (proc(5), `USER_HZ`).
const TICK: f64 = 0.01;
const MOST_OF_A_CORE: f64 = 0.3;
/// The rate counts as sustained when this share of it arrives.
const KEPT: f64 = 0.98;
/// Extra time for posts in transit at the end.
const REST: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Posts per second; a fifth as many identity events are sent with them
    #[arg(long, default_value_t = 1_000)]
    posts_per_second: u32,
    /// Length of the run, in seconds
    #[arg(long, default_value_t = 30)]
    seconds: u32,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(options))
}

/// The simulator, which ends when this is dropped.
struct Simulator {
    child: Child,
    address: String,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Simulator {
    fn start(posts_per_second: u32) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("platform-simulator");
        let mut child = Command::new(&program)
            .args(["--stream-load", &posts_per_second.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().strip_prefix("simulator ready http://");
        let address = address.context("the simulator is not ready")?.to_owned();
        Ok(Self { child, address })
    }

    /// Closes all streams.
    async fn cut(&self) -> Result<()> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request = "POST /control/streams/cut HTTP/1.1\r\nhost: s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        ensure!(
            answer.starts_with("HTTP/1.1 204"),
            "streams were not cut: {answer}"
        );
        Ok(())
    }
}

/// Posts that were read, by their numbers.
#[derive(Default)]
struct Read {
    times: HashMap<u64, u32>,
    delays: Vec<Duration>,
    polls: u64,
    breaks: u32,
    cursor_bytes: usize,
}

async fn measure(options: &Options) -> Result<Report> {
    let simulator = Simulator::start(options.posts_per_second)?;
    let host = format!("ws://{}/bluesky", simulator.address).parse()?;
    let adapter = Jetstream::new(vec![host], None, Arc::new(Unlimited));
    let length = Duration::from_secs(options.seconds.into());
    let mut read = Read::default();
    let mut cursor: Option<Cursor> = None;
    let begin = Instant::now();
    let cpu_before = used()?;
    let mut cuts = [length / 3, length * 2 / 3].into_iter().peekable();
    while begin.elapsed() < length {
        if cuts.next_if(|at| begin.elapsed() >= *at).is_some() {
            simulator.cut().await?;
        }
        poll(&adapter, &mut cursor, &mut read).await;
    }
    let wall = begin.elapsed();
    let cpu = used()? - cpu_before;
    let posts = read.times.len();
    let last = read.times.keys().max().copied().unwrap_or_default();
    // Posts before the first one that was read do not count.
    let first = read.times.keys().min().copied().unwrap_or_default();
    let until = Instant::now() + REST;
    while Instant::now() < until {
        poll(&adapter, &mut cursor, &mut read).await;
    }
    let lost = (first..=last)
        .filter(|number| !read.times.contains_key(number))
        .count();
    let doubled = read.times.values().filter(|times| **times > 1).count();

    #[expect(clippy::cast_precision_loss, reason = "some ten thousands")]
    let rate = posts as f64 / wall.as_secs_f64();
    let share = cpu / wall.as_secs_f64();
    let wanted = f64::from(options.posts_per_second);
    read.delays.sort_unstable();
    let delay = |part: usize| {
        read.delays
            .get(read.delays.len() * part / 100)
            .copied()
            .unwrap_or_default()
    };
    let mut report = Report::new("jetstream");
    report.row(
        Row::new("posts read in a second", format!("{rate:.0}"))
            .goal(format!("{wanted:.0}"), rate >= wanted * KEPT),
    );
    report.row(
        Row::new(
            "CPU of the reader",
            format!("{cpu:.2} s, {:.1} % of one core", share * 100.0),
        )
        .goal("30 %", share <= MOST_OF_A_CORE),
    );
    report.row(Row::new("posts lost", lost.to_string()).goal("0", lost == 0));
    report.row(Row::new("posts given twice", doubled.to_string()).goal("0", doubled == 0));
    report.row(Row::new(
        "from post to poll, p50 / p99",
        format!("{:.0?} / {:.0?}", delay(50), delay(99)),
    ));
    report.row(Row::new(
        "polls in a second",
        format!(
            "{:.1}",
            f64::from(u32::try_from(read.polls)?) / wall.as_secs_f64()
        ),
    ));
    report.row(Row::new(
        "largest cursor",
        format!("{} kB", read.cursor_bytes / 1_000),
    ));
    report.note(format!(
        "{posts} posts in {:.1} s; the connection broke {} times",
        wall.as_secs_f64(),
        read.breaks
    ));
    Ok(report)
}

async fn poll(adapter: &Jetstream, cursor: &mut Option<Cursor>, read: &mut Read) {
    read.polls += 1;
    let Ok(polled) = adapter
        .poll("jetstream", cursor.as_ref(), &PollLimits::default())
        .await
    else {
        read.breaks += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
        return;
    };
    let now = Timestamp::now();
    for post in &polled.posts {
        let text = post.text.as_deref().unwrap_or_default();
        let number = text
            .strip_prefix("load ")
            .and_then(|rest| rest.split_once(':')?.0.parse().ok());
        if let Some(number) = number {
            *read.times.entry(number).or_default() += 1;
            read.delays.push(now.since(post.time));
        }
    }
    let json = polled.cursor.to_json();
    // Only some polls are measured: serialising them costs as much again.
    if read.polls.is_multiple_of(20) {
        read.cursor_bytes = read.cursor_bytes.max(json.to_string().len());
    }
    *cursor = Cursor::from_json(&json);
}

/// Returns the seconds of CPU that this process has used, without its children.
fn used() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat
        .rsplit_once(')')
        .context("the kernel reports no times")?
        .1;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u32>().ok());
    let both = ticks(11)
        .zip(ticks(12))
        .context("the kernel reports no times")?;
    Ok(f64::from(both.0 + both.1) * TICK)
}
