//! Alerts against their real causes.
//!
//! A test scrapes a service, makes the cause of an alert, and scrapes again. Both scrapes are laid out on an artificial
//! time axis: the first is held, then the second, each for as long as the rule looks back and waits. promtool then
//! evaluates the real rules. The alert must not fire in the first part, and must fire in the second.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use domain::Timestamp;
use runtime::{
    Health,
    ops::{self, OpsServer},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{Replica, eventually, skip};

const RULES: &str = "helm/files/prometheus/earshot.rules.yaml";
const MINUTE: u64 = 60;

/// An alert whose cause a test makes.
pub struct Alert {
    name: &'static str,
    /// The rule, and the recorded rules that it reads.
    rule: String,
    job: &'static str,
    ops: OpsServer,
    first: Scrape,
    usual: Option<Scrape>,
    repeats: bool,
}

/// The samples of the rule's metrics.
#[derive(Clone, Default, PartialEq)]
struct Scrape {
    series: BTreeMap<String, Sample>,
    /// Seconds since 1970.
    time: f64,
}

#[derive(Clone, PartialEq)]
struct Sample {
    value: f64,
    is_counter: bool,
}

impl Alert {
    /// Scrapes `replica` before the cause of the alert `name`.
    ///
    /// # Panics
    /// If there is no such alert, or it fires without the cause.
    pub async fn watch(name: &'static str, replica: &Replica) -> Self {
        Self::of_service(name, replica.service, &replica.health).await
    }

    /// Does the same as [`Alert::watch`] for a service that is not hosted by a [`Replica`].
    ///
    /// # Panics
    /// As there.
    pub async fn of_service(name: &'static str, job: &'static str, health: &Health) -> Self {
        let listen = ([127, 0, 0, 1], 0).into();
        let ops = ops::start(listen, health.clone()).expect("a port is free");
        let mut alert = Self {
            name,
            rule: rule(name),
            job,
            ops,
            first: Scrape::default(),
            usual: None,
            repeats: false,
        };
        alert.first = alert.scrape().await;
        let calm = alert.judge(alert.first.clone(), false).await;
        assert_eq!(calm, Ok(()), "{name} fires without its cause");
        alert
    }

    /// Counters grow in each minute before the cause as they did since the first scrape.
    pub async fn record_usual(&mut self) {
        self.usual = Some(self.scrape().await);
    }

    /// The cause, which the test makes once, counts as one in each minute. Without it, all samples stay as they are.
    #[must_use]
    pub fn repeats(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Waits until the alert fires if the present state lasts.
    ///
    /// # Panics
    /// If it does not fire in time.
    pub async fn fires(&self) {
        let mut last = Scrape::default();
        eventually(&format!("{} fires", self.name), async || {
            let scrape = self.scrape().await;
            if scrape.series == last.series {
                return false;
            }
            last = scrape.clone();
            let judged = self.judge(scrape, true).await;
            // Shown if the test fails.
            if judged.is_err() {
                for (name, sample) in &last.series {
                    println!("{} does not fire yet: {name} {}", self.name, sample.value);
                }
            }
            judged.is_ok()
        })
        .await;
    }

    async fn scrape(&self) -> Scrape {
        let time = Timestamp::now().micros();
        let mut stream = TcpStream::connect(self.ops.address())
            .await
            .expect("the ops server accepts");
        let request = b"GET /metrics HTTP/1.1\r\nhost: ops\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.expect("it reads");
        let mut answer = String::new();
        let read = stream.read_to_string(&mut answer).await;
        read.expect("it answers");
        let (_, text) = answer.split_once("\r\n\r\n").expect("the head ends");
        #[expect(clippy::cast_precision_loss, reason = "of microseconds, exact enough")]
        let time = time as f64 / 1e6;
        Scrape::read(text, self.job, &self.rule, time)
    }

    /// Asks promtool whether the alert fires after the change to `last`, or stays calm.
    async fn judge(&self, last: Scrape, fires: bool) -> Result<(), String> {
        let Some(promtool) = promtool() else {
            let name = self.name;
            skip(&format!(
                "{name} is not evaluated without promtool (`.ci/deployment tools`)"
            ));
            let has_samples = !fires || !last.series.is_empty();
            assert!(has_samples, "{}: its metrics are missing", self.name);
            return Ok(());
        };
        let folder = std::env::temp_dir();
        let file = |kind| folder.join(format!("{}-{}.{kind}", self.name, std::process::id()));
        let (rules, path) = (file("rules.yaml"), file("test.json"));
        let document = self.document(&rules, &last, fires).to_string();
        let rule = self.rule.clone();
        let run = move || {
            std::fs::write(&rules, rule).expect("a temporary file");
            std::fs::write(&path, document).expect("a temporary file");
            let mut run = Command::new(promtool);
            run.args(["test", "rules"]).arg(&path);
            let output = run.output().expect("promtool starts");
            for path in [rules, path] {
                let _ = std::fs::remove_file(path);
            }
            if output.status.success() {
                return Ok(());
            }
            let texts = [output.stdout, output.stderr].concat();
            Err(String::from_utf8_lossy(&texts).into_owned())
        };
        let run = tokio::task::spawn_blocking(run);
        run.await.expect("it does not panic")
    }

    /// A unit test of promtool, which reads JSON as YAML.
    fn document(&self, rules: &Path, last: &Scrape, fires: bool) -> Value {
        let length = window(&self.rule) + waits(&self.rule);
        let interval = if length > 360 * MINUTE { 5 } else { 1 } * MINUTE;
        let steps = length / interval + 3;
        let change = steps * interval;
        #[expect(clippy::cast_precision_loss, reason = "a few minutes")]
        let minutes = (interval / MINUTE) as f64;
        let usual = self.usual.as_ref().unwrap_or(&self.first);
        let names = usual.series.keys().chain(last.series.keys());
        let names: std::collections::BTreeSet<_> = names.collect();
        let mut series: Vec<_> = names
            .into_iter()
            .map(|name| {
                let was = usual.value(name, change);
                let is = last.value(name, change);
                let values = self.before(name, was, minutes, steps)
                    + &self.after(name, was, is, last, minutes, steps);
                json!({"series": name, "values": values.trim_end()})
            })
            .collect();
        let up = format!(r#"up{{job="{}",instance="a:9090"}}"#, self.job);
        let values = format!("1x{}", steps * 2 - 1);
        series.push(json!({"series": up, "values": values}));
        // Beyond the last sample.
        let end = change * 2;
        let fired = |within: u64| {
            format!(
                r#"max(max_over_time(ALERTS{{alertname="{}", alertstate="firing"}}[{within}s]))"#,
                self.name
            )
        };
        let mut expected = vec![json!({
            "expr": fired(change), "eval_time": format!("{}s", change - interval), "exp_samples": [],
        })];
        if fires {
            expected.push(json!({
                "expr": fired(end), "eval_time": format!("{}s", end - interval),
                "exp_samples": [{"labels": "{}", "value": 1}],
            }));
        }
        let every = format!("{interval}s");
        json!({
            "rule_files": [rules],
            "evaluation_interval": every,
            "tests": [{"interval": every, "input_series": series, "promql_expr_test": expected}],
        })
    }

    fn before(&self, name: &str, was: Option<f64>, minutes: f64, steps: u64) -> String {
        let more = steps - 1;
        let Some(was) = was else {
            return format!("_x{steps} ");
        };
        let usual = self.usual.as_ref();
        let growth = usual.map_or(0.0, |usual| usual.growth(&self.first, name) * minutes);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let start = was - growth * more as f64;
        format!("{start}{growth:+}x{more} ")
    }

    fn after(
        &self,
        name: &str,
        was: Option<f64>,
        is: Option<f64>,
        last: &Scrape,
        minutes: f64,
        steps: u64,
    ) -> String {
        let more = steps - 1;
        let Some(is) = is else {
            return format!("stale _x{more}");
        };
        let growth = if self.repeats {
            let is_counter = last.series[name].is_counter;
            let was = was.unwrap_or(if is_counter { 0.0 } else { is });
            (is - was) * minutes
        } else {
            0.0
        };
        format!("{is}{growth:+}x{more}")
    }
}

impl Scrape {
    /// Reads those lines of the text format whose metrics `rule` names, as samples of this job.
    fn read(text: &str, job: &str, rule: &str, time: f64) -> Self {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names: Vec<&str> = rule.split(|c| !is_word(c)).collect();
        let mut series = BTreeMap::new();
        let mut is_counter = false;
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("# TYPE ") {
                is_counter = kind.ends_with(" counter") || kind.ends_with(" histogram");
            }
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            if line.starts_with('#') || !names.contains(&name) {
                continue;
            }
            let (labelled, value) = line.rsplit_once(' ').expect("a value follows");
            let labels = labelled[name.len()..].trim_matches(['{', '}']);
            let mut own = format!(r#"{name}{{job="{job}",instance="a:9090""#);
            if !labels.is_empty() {
                let _ = write!(own, ",{labels}");
            }
            own.push('}');
            let value = value.parse().expect("the value is a number");
            series.insert(own, Sample { value, is_counter });
        }
        Self { series, time }
    }

    /// The value on the time axis, which begins at 0. A point in time keeps its distance from the scrape.
    fn value(&self, name: &str, now: u64) -> Option<f64> {
        let value = self.series.get(name)?.value;
        let is_time = name.contains("_timestamp_seconds{");
        #[expect(clippy::cast_precision_loss, reason = "some days in seconds")]
        let now = now as f64;
        Some(if is_time {
            value - self.time + now
        } else {
            value
        })
    }

    /// How much a counter grew since `first`.
    fn growth(&self, first: &Self, name: &str) -> f64 {
        match self.series.get(name) {
            Some(sample) if sample.is_counter => {
                sample.value - first.series.get(name).map_or(0.0, |first| first.value)
            }
            _ => 0.0,
        }
    }
}

/// A file of rules with only this alert and the recorded rules that it names, for promtool evaluates all that it gets.
fn rule(name: &str) -> String {
    let rules = std::fs::read_to_string(root().join(RULES)).expect("the rules can be read");
    let rules = rules.split("\n      - ").skip(1);
    // The head of the next group follows a group's last rule.
    let rules: Vec<&str> = rules
        .map(|rule| rule.split("\n\n").next().unwrap_or(rule))
        .collect();
    let alert = format!("alert: {name}\n");
    let alert = rules.iter().find(|rule| rule.starts_with(&alert));
    let alert = *alert.unwrap_or_else(|| panic!("{RULES} has no {name}"));
    let recorded = rules.iter().filter(|rule| {
        let record = rule.strip_prefix("record: ");
        let record = record.and_then(|rule| rule.lines().next());
        record.is_some_and(|record| alert.contains(record))
    });
    let mut text = "groups:\n  - name: one\n    rules:".to_owned();
    for rule in recorded.chain([&alert]) {
        let _ = write!(text, "\n      - {rule}");
    }
    text
}

/// How far back the rule looks at most, in seconds.
fn window(rule: &str) -> u64 {
    let starts = rule.split('[').skip(1);
    let ranges = starts
        .filter_map(|start| start.split_once(']'))
        .map(|(range, _)| range);
    let offsets = rule.split(" offset ").skip(1);
    let offsets = offsets.filter_map(|start| start.split([')', ' ']).next());
    ranges.filter_map(seconds).max().unwrap_or_default()
        + offsets.filter_map(seconds).max().unwrap_or_default()
}

/// How long the rule's condition must hold, in seconds.
fn waits(rule: &str) -> u64 {
    let mut lines = rule.lines();
    let wait = lines.find_map(|line| line.trim().strip_prefix("for: "));
    wait.and_then(seconds).expect("the rule has `for`")
}

fn seconds(duration: &str) -> Option<u64> {
    let (number, unit) = duration.split_at_checked(duration.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1,
        "m" => MINUTE,
        "h" => 60 * MINUTE,
        "d" => 24 * 60 * MINUTE,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? * unit)
}

/// The tool that `.ci/deployment tools` fetches, or the system's.
fn promtool() -> Option<PathBuf> {
    let fetched = root().join("target/ci-tools/prometheus/usr/bin/promtool");
    let promtool = if fetched.exists() {
        fetched
    } else {
        "promtool".into()
    };
    let works = Command::new(&promtool).arg("--version").output().is_ok();
    works.then_some(promtool)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
