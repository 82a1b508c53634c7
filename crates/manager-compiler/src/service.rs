//! The service around the compiler: receives submissions, stores results.
//!
//! An event only wakes `queue`, which claims waiting Managers, fairly by account. The service compiles the submission
//! as it is in the database, and stores the result only if the submission has not changed meanwhile. So events may
//! arrive twice, late, or never.

use std::{sync::Arc, time::Instant};

use backbone::{Backbone, places::Places, shares::Shares};
use bus::Consumer;
use compiling::{
    compile::{self, Seed},
    feeds::{self, Platform},
};
use domain::{
    FeedName, Id, Instructions, ManagerName, Timestamp,
    instructions::MAX_FEEDS,
    manager::{ApplyError, ApplyErrorCode, Input, Origin, SourceType},
};
use events::{ManagerApplied, ManagerSubmitted};
use matching::Plan;
use model_endpoint::Endpoint;
use outbound::large;
use runtime::{Config, config};
use store::{
    AsyncConnection,
    feedback::Verdict,
    managers::{self, Generation, Submission},
    quotas,
};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use crate::{
    arrivals::Arrivals,
    discovery::Discovery,
    failures::Failures,
    feedback,
    refine::{self, Material},
    seeds::{Missed, Seeds},
};

/// Maximum number of verdicts, the latest first; older ones are about older instructions.
const MAX_VERDICTS: i64 = 200;
const MAX_MESSAGE_CHARS: usize = 1_000;
/// Large pages that are read at a time.
const LARGE: usize = 8;

runtime::metrics! {
    static COMPILE_DURATION: HistogramVec = "earshot_compile_duration_seconds",
        "Time from claiming a submission to storing its result", ["outcome"];
}

fn platform(configured: &config::PlatformConfig) -> Option<Platform> {
    Some(Platform {
        name: configured.name.clone(),
        kind: platforms::registry::kind(configured.kind.as_str())?,
        source: configured.source.as_str().to_owned(),
        base_url: configured.base_url.clone(),
    })
}

pub(crate) struct ManagerCompiler {
    platforms: Arc<Vec<Platform>>,
    /// Platforms that are open to some accounts only.
    restricted: Vec<config::PlatformConfig>,
    discovery: Discovery,
    client: outbound::Client,
    /// Places for large pages.
    large: Arc<Places>,
    /// Database connections that the compilations of each account use at a time. An apply waits for the lock of its
    /// account's row with a connection in hand, so without a limit one account could hold all of them.
    connections: Shares,
    model: Option<Endpoint>,
    /// Default quotas, for accounts without overrides.
    pub(crate) quotas: quotas::Limits,
    pub(crate) arrivals: Arrivals,
    pub(crate) failures: Failures,
    pub(crate) backbone: Backbone,
}

impl ManagerCompiler {
    /// Creates the service.
    ///
    /// # Errors
    /// If a setting cannot be used.
    pub(crate) fn new(config: &Config, backbone: Backbone) -> anyhow::Result<Self> {
        let policy = config.outbound.address_policy();
        let egress = config.outbound.egress()?;
        let client = outbound::Client::leaving_by(&egress, policy, outbound::USER_AGENT)?;
        platforms::leave_by(egress);
        Ok(Self {
            platforms: Arc::new(config.platforms.iter().filter_map(platform).collect()),
            restricted: { config.platforms.iter() }
                .filter(|platform| !platform.access.accounts.is_empty())
                .cloned()
                .collect(),
            discovery: Discovery::new(&config.platforms, &backbone.pool),
            client,
            large: Arc::new(Places::new(LARGE)),
            connections: Shares::of(usize::try_from(config.database.max_connections)?),
            model: config.compiler.model.as_ref().map(Endpoint::new),
            quotas: backbone::default_quotas(config),
            arrivals: Arrivals::default(),
            failures: Failures::default(),
            backbone,
        })
    }
}

/// Result of compiling an input's pages.
struct Read {
    instructions: Instructions,
    names_feed: bool,
    missed: Missed,
}

impl Consumer for ManagerCompiler {
    const QUEUE: &'static str = bus::topology::MANAGER_SUBMITTED;
    type Event = ManagerSubmitted;

    fn consume(&self, event: ManagerSubmitted) {
        self.arrivals.announce(event.name);
    }
}

impl ManagerCompiler {
    /// Runs a compilation of an account, whose large pages take places.
    pub(crate) fn in_turn<W: Future>(
        &self,
        account: Id,
        compilation: W,
    ) -> impl Future<Output = W::Output> + use<W> {
        let large = Arc::clone(&self.large);
        large::in_turn(move || Arc::clone(&large).take(account), compilation)
    }

    /// Returns a database connection from the share of `account`, and its permit. Hold one at a time: a task that waits
    /// for a second one of the same account may wait for itself.
    pub(crate) async fn connect(
        &self,
        account: Id,
    ) -> Result<(Option<OwnedSemaphorePermit>, store::Connection), store::Error> {
        let permit = self.connections.take(account, 1).await;
        Ok((permit, self.backbone.pool.get().await?))
    }

    /// Moves a waiting Manager of an account from PENDING_APPLY to APPLIED or APPLY_FAILED.
    pub(crate) async fn compile(
        &self,
        account: Id,
        claimed: &Generation,
    ) -> Result<(), store::Error> {
        let begin = Instant::now();
        let compiled = self.compile_submission(account, claimed).await;
        let outcome = match &compiled {
            Ok(Some(outcome)) => outcome,
            Ok(None) => return Ok(()),
            Err(_) => "error",
        };
        COMPILE_DURATION
            .with_label_values(&[outcome])
            .observe(begin.elapsed().as_secs_f64());
        compiled.map(drop)
    }

    /// Compiles and returns the outcome as a word; `None` if nothing waits. A later generation belongs to another
    /// claim.
    async fn compile_submission(
        &self,
        account: Id,
        claimed: &Generation,
    ) -> Result<Option<&'static str>, store::Error> {
        let name = claimed.manager;
        let submission = {
            let (_permit, mut conn) = self.connect(account).await?;
            managers::submission(&mut conn, name).await?
        };
        let submission = submission.filter(|found| found.generation == claimed.generation);
        let Some(submission) = submission else {
            tracing::debug!(manager.name = %name, "no submission to compile");
            return Ok(None);
        };
        let outcome = match self.instructions(account, &submission).await {
            Ok((instructions, _)) => self.apply(account, &submission, &instructions).await?,
            Err(error) => self.fail(account, &submission, error).await?,
        };
        Ok(Some(outcome))
    }

    /// Returns the instructions with the pages that had no content.
    pub(crate) async fn instructions(
        &self,
        account: Id,
        submission: &Submission,
    ) -> Result<(Instructions, Missed), ApplyError> {
        let mut missed = Missed::default();
        let closed = self.closed_platforms(&submission.account);
        let is_closed = |feed: &FeedName| closed.contains(&feed.platform());
        let mut instructions = match &submission.origin {
            Origin::Input(input) => {
                let mut read = self.compile_input(input, submission.source).await?;
                let mut compiled = read.instructions;
                if !read.names_feed {
                    self.discover(account, submission, &mut compiled).await;
                    compiled.feeds.retain(|feed| !is_closed(feed));
                }
                if !read.missed.unread_note.is_empty() {
                    compile::add_to_brief(&mut compiled, &read.missed.unread_note);
                }
                if let Some(given) = &input.sells {
                    compiled.sells.get_or_insert_default().replace_with(given);
                }
                let verdicts = self.verdicts(account, submission.manager).await;
                let (focus, sensitivity) = (input.focus.focus_type, input.sensitivity);
                feedback::apply(&mut compiled, focus, sensitivity, &verdicts);
                missed = std::mem::take(&mut read.missed);
                compiled
            }
            Origin::Instructions(instructions) => instructions.clone(),
        };
        if let Some(feed) = instructions.feeds.iter().find(|feed| is_closed(feed)) {
            let feed = feed.masked();
            let reason = format!("the account may not watch `{feed}`: its platform is restricted");
            return Err(error(ApplyErrorCode::InvalidInstructions, &reason));
        }
        if instructions.feeds.is_empty() {
            instructions.feeds = self.newest_feeds(submission.source);
            instructions.feeds.retain(|feed| !is_closed(feed));
        }
        if instructions.feeds.is_empty() {
            let source = submission.source.as_str();
            let reason = format!("no configured platform of source {source} can be watched");
            return Err(error(ApplyErrorCode::InvalidInstructions, &reason));
        }
        let feeds = std::mem::take(&mut instructions.feeds);
        instructions.feeds = feeds::of_kinds(feeds, &submission.kinds, &self.platforms)
            .map_err(|reason| error(ApplyErrorCode::InvalidInstructions, reason))?;
        // Instructions that the scanner cannot execute must not become APPLIED.
        Plan::compile(&instructions).map_err(|problem| {
            error(
                ApplyErrorCode::InvalidInstructions,
                &format!("instructions: {problem}"),
            )
        })?;
        Ok((instructions, missed))
    }

    /// Returns the platforms that the account may not watch.
    fn closed_platforms(&self, account: &str) -> Vec<&str> {
        let closed = { self.restricted.iter() }.filter(|platform| !platform.is_open_to(account));
        closed.map(|platform| platform.name.as_str()).collect()
    }

    /// Returns the customer's verdicts on the Manager's matches. On an error it returns none: a compile without them is
    /// better than no compile.
    async fn verdicts(&self, account: Id, name: ManagerName) -> Vec<Verdict> {
        let read = async {
            let (_permit, mut conn) = self.connect(account).await?;
            store::feedback::verdicts(&mut conn, name, MAX_VERDICTS).await
        };
        read.await.unwrap_or_else(|error: store::Error| {
            tracing::warn!(manager.name = %name, "cannot read the verdicts on its matches: {:#}", anyhow::Error::from(error));
            Vec::new()
        })
    }

    /// Adds communities that the source's platforms find for the compiled instructions. For a platform that does not
    /// answer, the Manager's current feeds stay.
    async fn discover(&self, account: Id, submission: &Submission, compiled: &mut Instructions) {
        let source = match submission.source {
            SourceType::Forum => platforms::Source::Forum,
            SourceType::Microblog => platforms::Source::Microblog,
            SourceType::Network => platforms::Source::Network,
        };
        let mut found = self
            .discovery
            .find(&submission.account, source, compiled)
            .await;
        if !found.silent.is_empty() {
            let kept = self.feeds_at_work(account, submission.manager).await;
            let silent = |feed: &FeedName| found.silent.iter().any(|name| name == feed.platform());
            let kept: Vec<FeedName> = kept.into_iter().filter(silent).collect();
            found.feeds.extend(kept);
        }
        compiled.feeds.extend(found.feeds);
        compiled.feeds.sort();
        compiled.feeds.dedup();
        compiled.feeds.truncate(MAX_FEEDS);
    }

    /// Returns the Manager's current feeds. The list is empty if they cannot be read.
    async fn feeds_at_work(&self, account: Id, name: ManagerName) -> Vec<FeedName> {
        let read = async {
            let (_permit, mut conn) = self.connect(account).await?;
            managers::get(&mut conn, name).await
        };
        let found: Result<_, store::Error> = read.await;
        let manager = found.unwrap_or_else(|error| {
            tracing::warn!(manager.name = %name, "cannot read its current feeds: {:#}", anyhow::Error::from(error));
            None
        });
        let instructions = manager.and_then(|manager| manager.instructions);
        instructions
            .map(|at_work| at_work.feeds)
            .unwrap_or_default()
    }

    async fn compile_input(&self, input: &Input, source: SourceType) -> Result<Read, ApplyError> {
        let seeds = Seeds::fetch(&self.client, &input.urls, source.as_str(), &self.platforms).await;
        let why = seeds.why();
        let missed = seeds.missed();
        let names_feed = seeds.read.iter().any(Seed::names_feed);
        let (focus, names) = (input.focus.focus_type, input.focus.names.clone());
        let sensitivity = input.sensitivity;
        let names_are_given = !names.is_empty();
        let platforms = Arc::clone(&self.platforms);
        let has_model = self.model.is_some();
        let compiled = tokio::task::spawn_blocking(move || {
            let material = has_model.then(|| Material::of(&seeds.read));
            let platforms = platforms.as_slice();
            compile::compile_seeds(
                seeds.read,
                focus,
                sensitivity,
                &names,
                source.as_str(),
                platforms,
            )
            .map(|instructions| (instructions, material))
        });
        match compiled.await {
            Ok(Ok((instructions, material))) => {
                let refined = match (&self.model, material) {
                    (Some(model), Some(material)) => {
                        refine::refine(model, instructions, &material, focus, names_are_given)
                            .instrument(tracing::info_span!("refine instructions"))
                            .await
                    }
                    _ => instructions,
                };
                Ok(Read {
                    instructions: refined,
                    names_feed,
                    missed,
                })
            }
            Ok(Err(failure)) => {
                let why = why.of(failure);
                Err(error(why.code, &why.message))
            }
            Err(panic) => {
                tracing::error!("compiling panicked: {panic}");
                Err(error(
                    ApplyErrorCode::NoUsableContent,
                    "the pages could not be read",
                ))
            }
        }
    }

    fn newest_feeds(&self, source: SourceType) -> Vec<FeedName> {
        let of_source = self
            .platforms
            .iter()
            .filter(|platform| platform.source == source.as_str());
        of_source.filter_map(Platform::newest).collect()
    }

    /// Puts the instructions to use, unless they exceed a quota of the account.
    async fn apply(
        &self,
        account: Id,
        submission: &Submission,
        instructions: &Instructions,
    ) -> Result<&'static str, store::Error> {
        let Submission {
            manager: name,
            generation,
            ..
        } = *submission;
        let applied = {
            let (_permit, mut conn) = self.connect(account).await?;
            conn.transaction(async |conn| {
                let (quotas, now) = (&self.quotas, Timestamp::now());
                managers::apply(conn, name, generation, instructions, quotas, now).await
            })
            .await
        };
        let applied = match applied {
            Err(store::Error::QuotaExceeded(exceeded)) => {
                let reason = exceeded.to_string();
                let failure = error(ApplyErrorCode::QuotaExceeded, &reason);
                return self.fail(account, submission, failure).await;
            }
            applied => applied?,
        };
        let Some(plan_version) = applied else {
            tracing::info!(manager.name = %name, generation, "dropped a stale result");
            return Ok("stale");
        };
        self.backbone.events.publish(ManagerApplied {
            name,
            generation,
            plan_version,
        });
        tracing::info!(
            manager.name = %name,
            generation,
            terms = instructions.include.len(),
            names = instructions.names.len(),
            feeds = instructions.feeds.len(),
            "applied"
        );
        Ok("applied")
    }

    async fn fail(
        &self,
        account: Id,
        submission: &Submission,
        error: ApplyError,
    ) -> Result<&'static str, store::Error> {
        let Submission {
            manager: name,
            generation,
            ..
        } = *submission;
        let failed = {
            let (_permit, mut conn) = self.connect(account).await?;
            managers::fail(&mut conn, name, generation, &error, Timestamp::now()).await?
        };
        if !failed {
            tracing::info!(manager.name = %name, generation, "dropped a stale result");
            return Ok("stale");
        }
        tracing::info!(manager.name = %name, generation, code = error.code.as_str(), reason = error.message, "not applied");
        Ok("failed")
    }
}

pub(crate) fn error(code: ApplyErrorCode, reason: &str) -> ApplyError {
    ApplyError {
        code,
        message: reason
            .chars()
            .filter(|c| *c != '\0')
            .take(MAX_MESSAGE_CHARS)
            .collect(),
    }
}
