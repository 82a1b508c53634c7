//! Measures decisions on posts per second, for a thousand to a hundred thousand Managers.
//!
//! Uses one thread and measures its CPU time, so that other processes do not count; they still share caches and memory
//! with it. The best of several rounds counts. In the same run, the index is compared with evaluating every plan, with
//! the automaton of the crate aho-corasick over all terms, which only finds terms, and with PostgreSQL with a `tsquery`
//! for each plan.

mod corpus;
mod load;
mod peers;
mod reading;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use domain::{FeedName, Id, Instructions, ManagerName, PlanVersion};
use load::{Kind, Load};
use matching::{Change, Index, LiveIndex, Plan, PostText};
use nix::time::{ClockId, clock_gettime};
use reading::Reading;

use crate::report::{Report, Row};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Numbers of Managers
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    managers: Vec<u64>,
    /// Posts per round
    #[arg(long, default_value_t = 4_000)]
    posts: u64,
    /// Rounds; the best counts
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Posts of this folder, `*.jsonl.gz` of objects with `title` and `text`, instead of generated ones
    #[arg(long)]
    corpus: Option<PathBuf>,
    /// Loads: `typical`, `focused` and `hot`
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Leave out the references, which take most of the time
    #[arg(long)]
    without_references: bool,
    /// Leave PostgreSQL out
    #[arg(long)]
    without_postgresql: bool,
    /// Measure the reader, too: the folder with encoder.bin and head.bin. For up to 10,000 Managers of `focused`
    #[arg(long, value_name = "DIR")]
    reader: Option<PathBuf>,
}

/// Returns the goals for a size: posts per second, bytes per Manager.
fn goals(managers: u64) -> Option<(f64, f64)> {
    match managers {
        1_000 => Some((200_000.0, 4_000.0)),
        10_000 => Some((80_000.0, 1_800.0)),
        100_000 => Some((16_000.0, 1_500.0)),
        _ => None,
    }
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    let mut report = Report::new("match");
    let real = match &options.corpus {
        Some(folder) => corpus::read(folder, usize::try_from(options.posts)?)?,
        None => Vec::new(),
    };
    report.note(match &options.corpus {
        Some(folder) => format!("{} posts of {}", real.len(), folder.display()),
        None => "only generated posts: no --corpus was given".to_owned(),
    });
    report.row(weigh(&Load::new(Kind::Focused, real.clone()), options)?);
    let folder = options.reader.as_deref();
    let reading = folder.map(|folder| Reading::open(folder, &mut report));
    let reading = reading.transpose()?;
    let mut typical = Vec::new();
    for (kind, name) in [
        (Kind::Typical, "typical"),
        (Kind::Focused, "focused"),
        (Kind::Hot, "hot"),
    ] {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == name) {
            continue;
        }
        if kind == Kind::Hot && !real.is_empty() {
            report.note("hot: skipped, its posts are generated");
            continue;
        }
        let load = Load::new(kind, real.clone());
        learn(&load)?;
        for &managers in &options.managers {
            let seconds = measure(&load, (kind, name), managers, options, &mut report)?;
            if kind == Kind::Typical {
                typical.push((managers, seconds));
            }
            if let (Some(reading), Kind::Focused, ..=10_000) = (&reading, kind, managers) {
                reading.measure(&load, managers, options.rounds, &mut report)?;
            }
        }
    }
    if let [(1_000, small), .., (100_000, large)] = typical.as_slice() {
        let ratio = large / small;
        let row = Row::new("typical, t(100k) / t(1k)", format!("{ratio:.1}"));
        report.row(row.goal("<= 16", ratio <= 16.0));
    }
    report.note("one thread, by its processor time, best of the rounds; all else on the machine shares its caches");
    report.note("typical: 650-byte posts, 60-term plans on 1-3 of 40 feeds, a tenth of them on a post's; focused: the same with a focus and names; hot: every plan on the feed, posts of nothing but the plans' commonest terms");
    Ok(report)
}

/// Returns the seconds per post.
fn measure(
    load: &Load,
    (kind, name): (Kind, &str),
    managers: u64,
    options: &Options,
    report: &mut Report,
) -> Result<f64> {
    eprintln!("{name}, {managers} Managers …");
    let plans = plans(load, managers)?;
    // They must not be dropped during the measurement.
    let kept = plans.clone();
    let start = processor_seconds()?;
    let index = Index::build(plans, PlanVersion::default());
    let build = processor_seconds()? - start;

    let count = match kind {
        Kind::Hot => (options.posts * 100 / managers).clamp(20, options.posts),
        Kind::Typical | Kind::Focused => options.posts,
    };
    let posts: Vec<load::Post> = (0..count).map(|number| load.post(number)).collect();
    let (mut best, mut matches) = (f64::MAX, 0);
    for _ in 0..options.rounds.max(1) {
        let start = processor_seconds()?;
        matches = 0;
        for post in &posts {
            matches += decide(&index, post);
        }
        best = best.min(processor_seconds()? - start);
    }
    let each = best / float(count);
    let mut row = Row::new(
        format!("{name}, {managers} Managers"),
        format!(
            "{:.0} posts/s ({:.1} µs, {:.3} matches a post)",
            1.0 / each,
            each * 1e6,
            float(matches) / float(count)
        ),
    );
    if !options.without_references {
        let mut figures = peers::BruteForce::new(&kept).compare(&posts, each);
        if kind == Kind::Typical {
            figures += &format!("; {}", peers::automaton(load, managers, &posts, each)?);
            if managers <= 10_000 && !options.without_postgresql {
                figures += &format!("; {}", peers::postgresql(load, managers, &posts, each)?);
            }
        }
        row = row.reference(figures);
    }
    let goals = goals(managers).filter(|_| kind == Kind::Typical);
    if let Some((rate, _)) = goals {
        row = row.goal(format!(">= {rate:.0} posts/s"), 1.0 / each >= rate);
    }
    report.row(row);
    if let Some((_, bytes)) = goals {
        let size = float(index.memory() as u64) / float(managers);
        let row = Row::new(
            format!("{name}, {managers}, memory a Manager"),
            format!("{size:.0} bytes"),
        );
        report.row(row.goal(format!("<= {bytes:.0} bytes"), size <= bytes));
        let times = changes(load, index, managers)?;
        let [median, late, worst] = [500, 990, 1_000].map(|share| {
            let at = (times.len() * share / 1_000).min(times.len() - 1);
            times[at] * 1e6
        });
        let row = Row::new(
            format!("{name}, {managers}, one replaced, seen by the next post"),
            format!("{median:.0} µs (p99 {late:.0}, worst {worst:.0})"),
        );
        report.row(row.goal("<= 100 µs", median <= 100.0));
    }
    if managers == 100_000 && kind == Kind::Typical {
        let row = Row::new("typical, 100000, build", format!("{build:.2} s"));
        report.row(row.goal("<= 2 s", build <= 2.0));
    }
    Ok(each)
}

/// The index learns from posts which words are common; in production it has seen many.
fn learn(load: &Load) -> Result<()> {
    let index = Index::build(plans(load, 2_000)?, PlanVersion::default());
    for number in 1_000_000..1_020_000 {
        decide(&index, &load.post(number));
    }
    Ok(())
}

fn plans(load: &Load, managers: u64) -> Result<Vec<(ManagerName, Arc<Plan>)>> {
    plans_of(load, managers, |instructions| instructions)
}

fn plans_of(
    load: &Load,
    managers: u64,
    change: impl Fn(Instructions) -> Instructions,
) -> Result<Vec<(ManagerName, Arc<Plan>)>> {
    (0..managers)
        .map(|number| {
            let instructions = change(load.instructions(number));
            Ok((name(number)?, Arc::new(Plan::compile(&instructions)?)))
        })
        .collect()
}

/// Decides like the scanner, starting from the post's strings.
fn decide(index: &Index, post: &load::Post) -> u64 {
    let text = PostText::new(Some(&post.title), Some(&post.text));
    index.matches(&text, &post.feed).len() as u64
}

/// Returns the seconds from a change until an index contains it, ascending. Measured in real time, so that waiting for
/// the CPU is included. Merges run concurrently, as in the scanner.
fn changes(load: &Load, index: Index, managers: u64) -> Result<Vec<f64>> {
    let live = LiveIndex::new(index);
    let mut times = Vec::new();
    for nth in 0..300 {
        let plan = Arc::new(Plan::compile(&load.instructions(managers + nth))?);
        let name = name(nth * 7 % managers)?;
        let start = Instant::now();
        live.apply([Change::Put(name, plan)], PlanVersion::default());
        times.push(start.elapsed().as_secs_f64());
        if live.is_due() {
            live.merge();
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Returns the cost of classifiers and lexicons per post: the time with them, minus the time to tokenise, stem and
/// look up a post for one plan. Every post that a plan with a focus watches needs the latter.
fn weigh(load: &Load, options: &Options) -> Result<Row> {
    let posts: Vec<load::Post> = (0..options.posts).map(|nth| load.post(nth)).collect();
    let index = Index::build(plans(load, 1)?, PlanVersion::default());
    let feeds = load.instructions(0).feeds;
    let feed = feeds.first().context("a plan without feeds")?;
    let (mut with, mut without) = (f64::MAX, f64::MAX);
    for _ in 0..options.rounds.max(1) {
        for (best, weighs) in [(&mut with, true), (&mut without, false)] {
            let texts: Vec<PostText> = posts
                .iter()
                .map(|post| PostText::new(Some(&post.title), Some(&post.text)))
                .collect();
            let start = processor_seconds()?;
            for text in &texts {
                if weighs {
                    Index::weigh(text);
                } else {
                    std::hint::black_box(index.matches(text, feed));
                }
            }
            *best = best.min(processor_seconds()? - start);
        }
    }
    let each = |seconds: f64| seconds / float(options.posts) * 1e6;
    let (with, without) = (each(with), each(without));
    let row = Row::new(
        "three heads and lexicons, a post",
        format!("{:.1} µs", with - without),
    );
    let row = row.reference(format!(
        "{with:.1} µs with cutting and stemming, {without:.1} µs these alone"
    ));
    Ok(row.goal("<= 10 µs", with - without <= 10.0))
}

fn name(number: u64) -> Result<ManagerName> {
    let id = |number: u64| -> Result<Id> { Ok(format!("{number:0>26}").parse()?) };
    Ok(ManagerName {
        namespace: id(number % 100)?,
        manager: id(number)?,
    })
}

/// Returns the CPU time of this thread from the thread's clock, because `schedstat` is one tick late.
fn processor_seconds() -> Result<f64> {
    seconds(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn seconds(clock: ClockId) -> Result<f64> {
    let used = clock_gettime(clock).context("read a clock of CPU time")?;
    Ok(Duration::from(used).as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "counts of things")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Returns whether a plan watches a post's feed.
fn watches(plan: &Plan, feed: &FeedName) -> bool {
    plan.watches(feed)
}
