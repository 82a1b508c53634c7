//! `earshot listen`: prints one line per Scan, and sends the webhook that a Connection would get, without a public
//! address.
//!
//! It polls each Manager in the way that API.md section 5 guarantees to miss nothing: Scans newer than the last one
//! seen, oldest first. The position is in a state file, so sleep, restarts and lost networks only cause delays. The
//! next state is written before a Scan is printed, and activated by a rename right after it. Only a process that is
//! killed between these two system calls prints one Scan twice, and no Scan is ever lost. A receiver may get that Scan
//! twice, as with any webhook.

mod forward;
mod places;

use std::{
    collections::BTreeMap,
    io::{IsTerminal, stdout},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use client::{Client, Query, Retries};
use domain::{Scan, Timestamp, connection::SigningSecret};
use serde::Deserialize;
use url::Url;

use self::{forward::Forwarder, places::Places};
use crate::customer::{self, Failure, Place, one_line};

/// Poll interval of each Manager, while there are few of them.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum reads per second, for many Managers: half of what a key may use.
const READS_PER_SECOND: u32 = 5;
/// Interval of checks for new Managers.
const LOOK: Duration = Duration::from_secs(15);
const LONGEST_WAIT: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Lines {
    /// Text for people.
    Text,
    /// The whole Scan as JSON.
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Listen to this Manager, given by its name; can be repeated. All Managers by default.
    #[arg(long = "manager", value_name = "NAME")]
    managers: Vec<domain::ManagerName>,
    /// At the first start, begin this long ago; by default with the next Scan. Later starts continue where the last one
    /// ended.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    since: Option<Duration>,
    /// Post each Scan to this URL as a Connection would, and print the answer.
    #[arg(long, value_name = "URL")]
    forward_to: Option<Url>,
    /// Sign requests with the secret `whsec_…` in this file.
    #[arg(long, value_name = "FILE", requires = "forward_to")]
    signing_secret_file: Option<PathBuf>,
    /// State file; by default a separate one for each address, set of Managers, and receiver.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Output format; by default text on a terminal and JSON Lines elsewhere.
    #[arg(long, short, value_enum)]
    output: Option<Lines>,
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    customer::finish(crate::block_on(async {
        let stop = stop_signal()?;
        let mut listener = Listener::new(arguments)?;
        tokio::select! {
            // A stop cannot come between a print and the save of its position: nothing in between waits.
            outcome = listener.run() => outcome,
            () = stop => Ok(()),
        }
    }))
}

fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// The needed fields of a Manager; others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManagerHead {
    name: String,
    create_time: Timestamp,
}

struct Listener {
    client: Client,
    only: Vec<String>,
    since: Option<Duration>,
    places: Places,
    forwarder: Option<Forwarder>,
    lines: Lines,
    managers: Vec<String>,
    /// True if the start was already reported.
    reported_start: bool,
}

impl Listener {
    fn new(arguments: Arguments) -> Result<Self, Failure> {
        let client = arguments.place.client()?.with_retries(Retries::NONE);
        let mut only: Vec<String> = arguments.managers.iter().map(ToString::to_string).collect();
        only.sort();
        only.dedup();
        let secret = match &arguments.signing_secret_file {
            Some(path) => Some(signing_secret(path)?),
            None => None,
        };
        let target = arguments.forward_to.as_ref().map_or("", Url::as_str);
        let mut purpose = vec![client.base().as_str(), target];
        purpose.extend(only.iter().map(String::as_str));
        let places = Places::open(arguments.state.as_deref(), &purpose)?;
        let lines = arguments.output.unwrap_or(match stdout().is_terminal() {
            true => Lines::Text,
            false => Lines::Jsonl,
        });
        let forwarder = arguments.forward_to.map(|url| Forwarder::new(url, secret));
        Ok(Self {
            forwarder: forwarder.transpose()?,
            client,
            only,
            since: arguments.since,
            places,
            lines,
            managers: Vec::new(),
            reported_start: false,
        })
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let mut wait = Duration::ZERO;
        let mut looked: Option<tokio::time::Instant> = None;
        let mut lost = false;
        loop {
            let due =
                self.managers.is_empty() || looked.is_none_or(|looked| looked.elapsed() >= LOOK);
            let outcome = if due {
                self.find_managers().await
            } else {
                Ok(())
            };
            let outcome = match outcome {
                Ok(()) => {
                    if due {
                        looked = Some(tokio::time::Instant::now());
                    }
                    self.poll().await
                }
                Err(failure) => Err(failure),
            };
            match outcome {
                Ok(()) => {
                    if lost {
                        eprintln!("earshot: the service answers again");
                    }
                    (lost, wait) = (false, Duration::ZERO);
                    let count = u32::try_from(self.managers.len()).unwrap_or(u32::MAX);
                    let spread = Duration::from_secs(1) * count / READS_PER_SECOND;
                    tokio::time::sleep(INTERVAL.max(spread)).await;
                }
                Err(Failure::Api(error, given)) if may_pass(&error) => {
                    let retry_after = error.refusal().and_then(|refusal| refusal.retry_after);
                    if !lost {
                        let failure = Failure::Api(error, given);
                        eprintln!("earshot: {}; trying again", failure.words());
                        lost = true;
                    }
                    wait = (wait * 2).clamp(Duration::from_millis(500), LONGEST_WAIT);
                    let retry_after = Duration::from_secs(retry_after.unwrap_or(0).min(90));
                    tokio::time::sleep(retry_after.max(wait)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Finds the Managers, and sets the start position of new ones.
    async fn find_managers(&mut self) -> Result<(), Failure> {
        let found = self.heads().await?;
        let first = self.places.are_new();
        let mut begun = BTreeMap::new();
        for manager in &found {
            if self.places.of(&manager.name).is_some() {
                continue;
            }
            let place = match self.since {
                Some(since) if first => Timestamp::now().minus(since),
                None if first => self.newest(&manager.name).await?,
                // The Manager was created during a pause, so all of its Scans are new.
                _ => manager.create_time,
            };
            begun.insert(manager.name.clone(), place);
        }
        if first || !begun.is_empty() {
            self.places.begin(begun)?;
        }
        if !self.reported_start {
            self.reported_start = true;
            match found.len() {
                0 => eprintln!("earshot: listening; there is no Manager yet"),
                1 => eprintln!("earshot: listening to 1 Manager"),
                count => eprintln!("earshot: listening to {count} Managers"),
            }
        }
        self.managers = found.into_iter().map(|manager| manager.name).collect();
        Ok(())
    }

    async fn heads(&self) -> Result<Vec<ManagerHead>, Failure> {
        let mut found = Vec::new();
        for name in &self.only {
            found.push(self.client.get(name).await?);
        }
        if !self.only.is_empty() {
            return Ok(found);
        }
        let namespaces = self.client.pages("namespaces", Query::default());
        let namespaces: Vec<serde_json::Value> = namespaces.all().await?;
        for namespace in &namespaces {
            let name = namespace["name"].as_str().unwrap_or_default();
            let managers = self
                .client
                .pages::<ManagerHead>(&format!("{name}/managers"), Query::default());
            match managers.all().await {
                Ok(managers) => found.extend(managers),
                // Deleted meanwhile.
                Err(error) if error.refusal().is_some_and(|it| it.status == 404) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Returns the creation time of the newest Scan, by the service's clock.
    async fn newest(&self, manager: &str) -> Result<Timestamp, Failure> {
        let query = Query {
            order_by: Some("createTime desc".to_owned()),
            page_size: Some(1),
            ..Query::default()
        };
        let scans = format!("{manager}/scans");
        let newest = self.client.list::<Scan>(&scans, &query).await?;
        let newest = newest.items.into_iter().next();
        Ok(newest.map_or(Timestamp::UNIX_EPOCH, |scan| scan.create_time))
    }

    async fn poll(&mut self) -> Result<(), Failure> {
        for manager in self.managers.clone() {
            match self.poll_one(&manager).await {
                Err(Failure::Api(error, _))
                    if error.refusal().is_some_and(|it| it.status == 404) =>
                {
                    eprintln!("earshot: {manager} was deleted");
                    if self.only.contains(&manager) {
                        self.only.retain(|name| *name != manager);
                        if self.only.is_empty() {
                            return Err(Failure::from(*error));
                        }
                    }
                    self.managers.retain(|name| *name != manager);
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Prints all new Scans of a Manager.
    async fn poll_one(&mut self, manager: &str) -> Result<(), Failure> {
        let collection = format!("{manager}/scans");
        loop {
            let place = self.places.of(manager).unwrap_or(Timestamp::UNIX_EPOCH);
            let query =
                Query::filtered(format!("createTime > \"{place}\"")).ordered("createTime asc");
            let page = self.client.list::<Scan>(&collection, &query).await?;
            for scan in &page.items {
                let answer = match &self.forwarder {
                    Some(forwarder) => Some(forwarder.post(scan).await?),
                    None => None,
                };
                // No wait from here to the end.
                let next = self.places.prepare(manager, scan.create_time)?;
                self.print(scan, answer.as_deref())?;
                next.keep()?;
            }
            if page.next_page_token.is_none() {
                return Ok(());
            }
        }
    }

    fn print(&self, scan: &Scan, answer: Option<&str>) -> Result<(), Failure> {
        let line = match self.lines {
            Lines::Jsonl => {
                if let Some(answer) = answer {
                    eprintln!("earshot: {} → {answer}", scan.name);
                }
                let json = serde_json::to_string(scan)
                    .map_err(|error| Failure::Local(error.to_string()))?;
                customer::escaped(&json)
            }
            Lines::Text => {
                let post = &scan.post;
                let words = post.title.as_deref().or(post.text.as_deref());
                let words = one_line(words.unwrap_or_default());
                let words: String = words.chars().take(100).collect();
                let answer = answer.map(|answer| format!("  → {answer}"));
                format!(
                    "{}  {:.2}  {words}  {}{}",
                    scan.create_time,
                    scan.matched.score,
                    one_line(&post.url),
                    answer.unwrap_or_default()
                )
            }
        };
        customer::print(&format!("{line}\n"))
    }
}

/// Returns whether the error is temporary. A captive portal may also answer instead of the service.
fn may_pass(error: &client::Error) -> bool {
    let foreign = error.refusal().is_some_and(|refusal| refusal.status < 400);
    error.is_passing() || foreign || matches!(error, client::Error::Unexpected(_))
}

fn signing_secret(path: &std::path::Path) -> Result<SigningSecret, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    text.trim().parse().map_err(|_issue| {
        Failure::usage(format!(
            "{} contains no secret of the form whsec_ and base64",
            path.display()
        ))
    })
}
