//! Latency from a post on a platform to its committed Scan.
//!
//! Uses a private PostgreSQL and RabbitMQ, the release binary of the scanner in a separate process, and the platforms'
//! simulator in this one. Posts are published at a steady rate to a few feeds; each matches the plan of one Manager of
//! many. This process checks every few milliseconds which posts are committed; a post is stored in the transaction that
//! creates its Scan.

mod knee;

use std::{
    collections::HashMap,
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Jsonb, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, Instructions, Timestamp, instructions::Term, namespace::CreateNamespace};
use platform_simulator::{NewPost, Simulator};
use private_servers::{
    RabbitMq, free_port,
    postgres::{Options as PostgresOptions, Postgres},
};
use store::{keys, namespaces};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::{
    dispatch::cpu,
    report::{Report, Row},
};

/// The feeds that are read. A document contains its newest 50 posts, so each must get fewer between two polls.
#[derive(Clone, Copy)]
struct Feeds {
    number: u32,
    poll_interval: &'static str,
}

const FEEDS: Feeds = Feeds {
    number: 4,
    poll_interval: "100ms",
};
const LOOK: Duration = Duration::from_millis(4);
const WARM_UP_SECONDS: u32 = 3;
/// One of this many checks reads far back.
const SHORT_LOOKS: u32 = 50;
/// Rows per statement.
const BULK: usize = 2_000;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Managers, each with a different plan
    #[arg(long, default_value_t = 10_000)]
    managers: u32,
    /// Posts per second, over all feeds
    #[arg(long, default_value_t = 200)]
    posts_per_second: u32,
    /// Length of the measurement after a warm-up, in seconds
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Measure the saturation point instead: with 1,000 Connections, at a rising rate until the first queue grows, and
    /// then at half of it
    #[arg(long)]
    knee: bool,
    /// Length at half of that rate, in seconds; memory growth is judged from two minutes on
    #[arg(long, default_value_t = 30, requires = "knee")]
    soak: u32,
    /// Measure at this rate instead of half of the saturation rate, and skip the search for it
    #[arg(long, requires = "knee")]
    rate: Option<u32>,
    /// Measure deliveries while RabbitMQ is away for so many seconds, and after it is back, with two dispatchers
    #[arg(long, value_name = "SECONDS", conflicts_with = "knee")]
    without_broker: Option<u32>,
    /// Directory of the servers during the run
    #[arg(long, default_value = "target/bench/e2e-servers")]
    home: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?
        .block_on(async {
            match options.without_broker {
                Some(seconds) => knee::measure_without_broker(options, seconds).await,
                None if options.knee => knee::measure(options).await,
                None => measure(options).await,
            }
        })
}

async fn measure(options: &Options) -> Result<Report> {
    let _ = fs::remove_dir_all(&options.home);
    fs::create_dir_all(&options.home)?;
    let mut postgres =
        Postgres::start(&options.home.join("postgres"), &PostgresOptions::durable())?;
    let mut rabbitmq = RabbitMq::start(&options.home.join("rabbitmq"))?;
    let url = postgres.url();
    store::migrations::migrate(&url).await?;
    let mut conn = store::establish(&url).await?;
    watch(&mut conn, options.managers, FEEDS).await?;
    let simulator = Simulator::start("127.0.0.1:0".parse()?)?;
    let amqp_url = rabbitmq.amqp_url();
    let mut scanner = Scanner::start(options, FEEDS, &url, &amqp_url, &simulator).await?;

    // The first poll reads the past of the feeds, which is empty.
    let begin = Instant::now();
    while cursors(&mut conn).await? < i64::from(FEEDS.number) {
        ensure!(
            begin.elapsed() < Duration::from_secs(60),
            "the feeds are not read"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let warm = Load::run(options, WARM_UP_SECONDS, 0, &simulator, &mut conn).await?;
    let before = scanner.cpu()?;
    let begin = Instant::now();
    let next = warm.published.len() as u64;
    let load = Load::run(options, options.seconds, next, &simulator, &mut conn).await?;
    let took = begin.elapsed().as_secs_f64();
    let spent = scanner.cpu()?;
    let megabytes = cpu::megabytes(scanner.process.id())?;
    scanner.stop();

    let mut report = Report::new("e2e");
    report.row(
        Row::new(
            format!(
                "{} posts to Scans, {} Managers, {}/s: lost or doubled",
                load.published.len(),
                options.managers,
                options.posts_per_second
            ),
            format!("{}", load.wrong),
        )
        .goal("0", load.wrong == 0 && warm.wrong == 0),
    );
    let served = simulator.served();
    let of = |from: &dyn Fn(&str) -> Option<i64>| {
        let mut waits: Vec<f64> = load
            .committed
            .iter()
            .filter_map(|(id, at)| Some(milliseconds(from(id)?, *at)))
            .collect();
        waits.sort_by(f64::total_cmp);
        waits
    };
    let from_answer = of(&|id| served.get(id).copied());
    let (p50, p99) = (quantile(&from_answer, 0.50), quantile(&from_answer, 0.99));
    report.row(
        Row::new(
            "from the platform's answer to the committed Scan",
            format!("p50 {p50:.1}, p99 {p99:.1} ms"),
        )
        .goal("p99 <= 100 ms", p99 <= 100.0),
    );
    let from_post = of(&|id| load.published.get(id).copied());
    let (p50, p99) = (quantile(&from_post, 0.50), quantile(&from_post, 0.99));
    report.row(
        Row::new(
            format!(
                "from the post to the committed Scan, polled every {}",
                FEEDS.poll_interval
            ),
            format!("p50 {p50:.1}, p99 {p99:.1} ms"),
        )
        .reference("the interval is a setting"),
    );
    let share = |seconds: f64| format!("{:.1} % of a core", seconds / took * 100.0);
    report.row(Row::new("CPU of the scanner", share(spent[0] - before[0])));
    report.row(Row::new(
        "CPU of PostgreSQL and RabbitMQ, with this bench's looks",
        format!(
            "{}, {}",
            share(spent[1] - before[1]),
            share(spent[2] - before[2])
        ),
    ));
    report.row(Row::new(
        "memory of the scanner",
        format!("{megabytes:.0} MB"),
    ));
    drop(conn);
    postgres.kill();
    rabbitmq.kill();
    fs::remove_dir_all(&options.home).context("remove the servers' home")?;
    Ok(report)
}

fn milliseconds(from: i64, to: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a wait of some milliseconds")]
    let micros = (to - from).max(0) as f64;
    micros / 1_000.0
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let at = (sorted.len() as f64 * part) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// Posts of one period, and their results.
struct Load {
    /// Time of publication of each post, in microseconds.
    published: HashMap<String, i64>,
    /// Time when each was first seen committed.
    committed: HashMap<String, i64>,
    /// Posts without a Scan, or with two.
    wrong: i64,
    looks: u32,
}

impl Load {
    async fn run(
        options: &Options,
        seconds: u32,
        // All posts differ, because a Manager gets only one of several near-duplicates.
        next: u64,
        simulator: &Simulator,
        conn: &mut AsyncPgConnection,
    ) -> Result<Self> {
        let begin = Instant::now();
        let first = Timestamp::now();
        let all = u64::from(options.posts_per_second) * u64::from(seconds);
        let mut load = Self {
            published: HashMap::new(),
            committed: HashMap::new(),
            wrong: 0,
            looks: 0,
        };
        let mut number = 0;
        let patience = Duration::from_secs(u64::from(seconds) + 20);
        while (load.committed.len() as u64) < all && begin.elapsed() < patience {
            let due = u64::try_from(begin.elapsed().as_millis())?
                * u64::from(options.posts_per_second)
                / 1_000;
            let due = due.min(all);
            while number < due {
                let posted = simulator.publish(vec![post(next + number, options.managers, FEEDS)]);
                let now = Timestamp::now().micros();
                let ids = posted.into_iter().map(|posted| posted.post_id);
                load.published.extend(ids.map(|id| (id, now)));
                number += 1;
            }
            load.look(conn, first).await?;
            tokio::time::sleep(LOOK).await;
        }
        load.wrong = load.count_wrong(conn, first).await?;
        Ok(load)
    }

    async fn look(&mut self, conn: &mut AsyncPgConnection, first: Timestamp) -> Result<()> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            post_id: String,
        }
        // A late commit has an earlier timestamp, by the length of its transaction. Most transactions are short, and
        // reading far back each time would be most of PostgreSQL's work.
        let back = if self.looks.is_multiple_of(SHORT_LOOKS) {
            Duration::from_secs(20)
        } else {
            Duration::from_millis(500)
        };
        self.looks += 1;
        let since = first.max(Timestamp::now().minus(back));
        let rows: Vec<Row> = sql_query("SELECT post_id FROM posts WHERE receive_time >= $1")
            .bind::<Timestamptz, _>(since.to_chrono())
            .load(conn)
            .await?;
        let now = Timestamp::now().micros();
        for row in rows {
            if self.published.contains_key(&row.post_id) {
                self.committed.entry(row.post_id).or_insert(now);
            }
        }
        Ok(())
    }

    async fn count_wrong(&self, conn: &mut AsyncPgConnection, first: Timestamp) -> Result<i64> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            number: i64,
        }
        let scans: Row = sql_query("SELECT count(*) AS number FROM scans WHERE create_time >= $1")
            .bind::<Timestamptz, _>(first.to_chrono())
            .get_result(conn)
            .await?;
        let unseen = i64::try_from(self.published.len() - self.committed.len())?;
        Ok((i64::try_from(self.published.len())? - scans.number)
            .abs()
            .max(unseen))
    }
}

/// A post that contains the term of one Manager.
fn post(number: u64, managers: u32, feeds: Feeds) -> NewPost {
    let wanted = number * 7_919 % u64::from(managers);
    NewPost {
        platform: format!("feed:f{}", number % u64::from(feeds.number)),
        title: format!("Has anybody compared product{wanted} with what came before it?"),
        text: Some(format!(
            "<p>I have used it for {number} days now, mostly for small jobs at home, and wonder whether the \
             newer ones are worth their price. It is slow when the file is large, and support did not answer.</p>"
        )),
        author: "ana".to_owned(),
        ..NewPost::default()
    }
}

async fn cursors(conn: &mut AsyncPgConnection) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let row: Row = sql_query("SELECT count(*) AS number FROM feeds WHERE cursor IS NOT NULL")
        .get_result(conn)
        .await?;
    Ok(row.number)
}

/// Creates active Managers, each with a different term, on all feeds. Returns their Namespace and ids.
async fn watch(
    conn: &mut AsyncPgConnection,
    managers: u32,
    feeds: Feeds,
) -> Result<(Uuid, Vec<Uuid>)> {
    let account = keys::ensure_account(conn, "bench", Timestamp::now()).await?;
    let draft = CreateNamespace {
        nickname: "bench".to_owned(),
        mutes: Vec::new(),
    };
    let namespace = namespaces::insert(conn, account, &draft, &crate::QUOTAS).await?;
    let namespace = namespace.name.namespace.to_uuid();
    let feeds: Vec<String> = (0..feeds.number)
        .map(|feed| format!("f{feed}:newest"))
        .collect();
    let numbers: Vec<u32> = (0..managers).collect();
    let mut made = Vec::new();
    for numbers in numbers.chunks(BULK) {
        let ids: Vec<Uuid> = numbers.iter().map(|_| Id::generate().to_uuid()).collect();
        let mut plans = Vec::new();
        for number in numbers {
            let term = Term {
                text: format!("product{number}"),
                weight: 1.0,
            };
            plans.push(serde_json::to_value(Instructions {
                feeds: feeds
                    .iter()
                    .map(|feed| feed.parse())
                    .collect::<Result<_, _>>()?,
                include: vec![term],
                threshold: Some(1.0),
                ..Instructions::default()
            })?);
        }
        sql_query(
            "WITH given AS (SELECT * FROM unnest($2, $3) AS given (id, plan)), \
                  made AS (INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, \
                      submitted_instructions, instructions, apply_time, submit_time, create_time, update_time) \
                  SELECT $1, id, 'bench', true, 'MANUAL', 'NETWORK', 'APPLIED', plan, plan, now(), now(), now(), now() \
                  FROM given RETURNING id) \
             INSERT INTO scan_clocks (namespace_id, manager_id, last_time) SELECT $1, id, now() FROM made",
        )
        .bind::<SqlUuid, _>(namespace)
        .bind::<Array<SqlUuid>, _>(&ids)
        .bind::<Array<Jsonb>, _>(plans)
        .execute(conn)
        .await?;
        sql_query(
            "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
             SELECT name, split_part(name, ':', 1), true, now(), now() FROM unnest($1) AS given (name) \
             ON CONFLICT DO NOTHING",
        )
        .bind::<Array<Text>, _>(&feeds)
        .execute(conn)
        .await?;
        sql_query(
            "INSERT INTO feed_watchers (feed, namespace_id, manager_id) \
             SELECT feed, $1, id FROM unnest($2) AS f (feed), unnest($3) AS m (id)",
        )
        .bind::<SqlUuid, _>(namespace)
        .bind::<Array<Text>, _>(&feeds)
        .bind::<Array<SqlUuid>, _>(&ids)
        .execute(conn)
        .await?;
        made.extend(ids);
    }
    sql_query("ANALYZE").execute(conn).await?;
    Ok((namespace, made))
}

struct Scanner {
    process: Child,
}

impl Scanner {
    async fn start(
        options: &Options,
        feeds: Feeds,
        url: &str,
        amqp_url: &str,
        simulator: &Simulator,
    ) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("scanner");
        let ops = format!("127.0.0.1:{}", free_port()?);
        let log = fs::File::create(options.home.join("scanner.log"))?;
        let mut command = Command::new(&program);
        for feed in 0..feeds.number {
            let set = |name: &str| format!("EARSHOT_PLATFORMS__{feed}__{name}");
            command
                .env(set("NAME"), format!("f{feed}"))
                .env(set("KIND"), "feed")
                .env(set("SOURCE"), "NETWORK")
                .env(set("POLL_INTERVAL"), feeds.poll_interval)
                .env(
                    set("BASE_URL"),
                    format!("{}/feeds/f{feed}.json", simulator.base_url()),
                );
        }
        let process = command
            .env("EARSHOT_DATABASE__URL", url)
            .env("EARSHOT_BUS__URL", amqp_url)
            .env("EARSHOT_OPS__LISTEN", &ops)
            .env("EARSHOT_LOG__FILTER", "warn")
            .env("EARSHOT_QUOTAS__SCANS_PER_DAY", "1000000000")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let started = Self { process };
        let begin = Instant::now();
        while TcpStream::connect(&ops).await.is_err() {
            if begin.elapsed() > Duration::from_secs(20) {
                bail!("the scanner does not start; see scanner.log");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(started)
    }

    /// Returns the CPU seconds of scanner, PostgreSQL and RabbitMQ.
    fn cpu(&self) -> Result<Vec<f64>> {
        cpu::of_descendants(
            |name| match name {
                "scanner" => 0,
                name if name.starts_with("postgres") => 1,
                _ => 2,
            },
            3,
        )
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        self.stop();
    }
}
