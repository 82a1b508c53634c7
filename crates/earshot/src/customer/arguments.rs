//! What may stand on the command line.

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use domain::Sensitivity;

use super::{body::Body, output::Form, place::Place};

/// What all commands take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The Namespace, as name or id; not needed where the key has one alone.
    #[arg(long, global = true, env = "EARSHOT_NAMESPACE", value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// A table on a terminal and JSON Lines elsewhere, where it is left out.
    #[arg(long, short, global = true, value_enum)]
    pub(crate) output: Option<Form>,
    /// Do it for real, answer, and take it back (`x-test`).
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
}

// Lists that take more are variants of the same name, and a group may have a name once.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct List {
    /// Such as `createTime > "2026-11-21T00:00:00Z"`; passed to the API as it is.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Such as `createTime asc`.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) order_by: Option<String>,
    /// Stop after so many; all of them without it.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<NonZeroUsize>,
    /// For tables and CSV, such as `name,post.url`.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The resource's `name`; of Managers and Connections the id will do.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) named: Named,
    #[command(flatten)]
    pub(crate) body: Body,
    /// Change what this names alone, such as `nickname,input.focus`.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) update_mask: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Also where it holds others, or others name it.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Namespaces {
    #[command(subcommand)]
    pub(crate) verb: NamespacesVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NamespacesVerb {
    /// List those that the key may see.
    List(List),
    /// Show one.
    Get(Named),
    /// Make one.
    Create(Body),
    /// Change one.
    Update(Update),
    /// Delete one.
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct Managers {
    #[command(subcommand)]
    pub(crate) verb: ManagersVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ManagersVerb {
    /// List those of a Namespace.
    List(List),
    /// Show one, with what it looks for.
    Get(Named),
    /// Make one.
    Create(CreateManager),
    /// Change one.
    Update(UpdateManager),
    /// Delete one, and its Scans.
    Delete(Delete),
    /// Read its pages again, and make its instructions anew.
    Apply(Named),
    /// What it would make of posts: of those given as JSON, of recent ones, or of some by their URLs.
    Preview(Preview),
    /// Look through the past of its feeds.
    Backfill(Backfill),
}

#[derive(Debug, Args)]
pub(crate) struct CreateManager {
    #[command(flatten)]
    pub(crate) body: Body,
    #[command(flatten)]
    pub(crate) choice: SensitivityChoice,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateManager {
    #[command(flatten)]
    pub(crate) update: Update,
    #[command(flatten)]
    pub(crate) choice: SensitivityChoice,
}

#[derive(Debug, Args)]
pub(crate) struct SensitivityChoice {
    /// Same as `--set input.sensitivity=…`: `precise` finds fewer posts and fewer wrong ones, `broad` finds
    /// more and misses fewer.
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) sensitivity: Option<SensitivityWord>,
}

impl SensitivityChoice {
    /// Returns the body with the choice in it.
    pub(crate) fn add_to(&self, mut body: Body) -> Body {
        if let Some(word) = self.sensitivity {
            let word = Sensitivity::from(word).as_str();
            body.set_field("input.sensitivity", word);
        }
        body
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum SensitivityWord {
    Precise,
    #[default]
    Balanced,
    Broad,
}

impl From<SensitivityWord> for Sensitivity {
    fn from(word: SensitivityWord) -> Self {
        match word {
            SensitivityWord::Precise => Self::Precise,
            SensitivityWord::Balanced => Self::Balanced,
            SensitivityWord::Broad => Self::Broad,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Preview {
    #[command(flatten)]
    pub(crate) named: Named,
    #[command(flatten)]
    pub(crate) body: Body,
    /// So many of the newest posts of its feeds.
    #[arg(long, value_name = "N")]
    pub(crate) recent: Option<u32>,
    /// A post that was read; may be given more than once.
    #[arg(long = "post-url", value_name = "URL")]
    pub(crate) urls: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Backfill {
    #[command(flatten)]
    pub(crate) named: Named,
    /// How far back, such as `7d`.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) since: Duration,
    /// Deliver what is found, too.
    #[arg(long)]
    pub(crate) notify: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Connections {
    #[command(subcommand)]
    pub(crate) verb: ConnectionsVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConnectionsVerb {
    /// List those of a Namespace.
    List(List),
    /// Show one.
    Get(Named),
    /// Make one. Secrets belong into `--file`, not on the command line.
    Create(Body),
    /// Change one.
    Update(Update),
    /// Delete one.
    Delete(Delete),
    /// Send a made-up Scan there now, and tell what came of it.
    Test(Named),
    /// Deliver again to one that was disabled.
    Enable(Named),
    /// Send again what was delivered in a span of time.
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) named: Named,
    /// From how long ago on, such as `2h`.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) since: Duration,
    /// Up to how long ago; up to now without it.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) until: Option<Duration>,
    /// Only deliveries in this state, such as `EXHAUSTED`; may be given more than once.
    #[arg(long = "state", value_name = "STATE")]
    pub(crate) states: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Scans {
    #[command(subcommand)]
    pub(crate) verb: ScansVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScansVerb {
    /// List those of a Namespace, or of one Manager, newest first.
    List {
        #[command(flatten)]
        list: List,
        /// Of this Manager alone.
        #[arg(long, value_name = "NAME")]
        manager: Option<String>,
    },
    /// Show one.
    Get(Named),
    /// Say what you think of one: `--set value=false`, `--set labels='["not for us"]'`.
    Update(Update),
}

#[derive(Debug, Args)]
pub(crate) struct Deliveries {
    #[command(subcommand)]
    pub(crate) verb: DeliveriesVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeliveriesVerb {
    /// List those of a Namespace, or to one Connection, newest first.
    List {
        #[command(flatten)]
        list: List,
        /// To this Connection alone.
        #[arg(long, value_name = "NAME")]
        connection: Option<String>,
    },
    /// Show one, with its attempts.
    Get(Named),
    /// Send one again, now.
    Retry(Named),
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::{Managers, ManagersVerb};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        managers: Managers,
    }

    /// The body that a command line sends.
    fn body(line: &[&str]) -> Result<Value, String> {
        let line = [&["managers"], line].concat();
        let parsed = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        let body = match parsed.managers.verb {
            ManagersVerb::Create(it) => it.choice.add_to(it.body),
            ManagersVerb::Update(it) => it.choice.add_to(it.update.body),
            other => panic!("{other:?} sends no Manager"),
        };
        Ok(body.read().expect("the body is JSON"))
    }

    #[test]
    fn sensitivity_becomes_a_field_of_the_input() {
        for (word, value) in [
            ("precise", "PRECISE"),
            ("balanced", "BALANCED"),
            ("broad", "BROAD"),
            ("Broad", "BROAD"),
        ] {
            let expected = json!({"input": {"sensitivity": value}});
            let update = body(&["update", "NAME", "--sensitivity", word]);
            assert_eq!(update.as_ref(), Ok(&expected));
            let data = r#"{"input": {"urls": [], "sensitivity": "BALANCED"}}"#;
            let create = body(&["create", "--data", data, "--sensitivity", word]);
            let expected = json!({"input": {"urls": [], "sensitivity": value}});
            assert_eq!(create.as_ref(), Ok(&expected));
        }
        let without = body(&["update", "NAME", "--set", "enable=false"]);
        assert_eq!(without, Ok(json!({"enable": false})));
    }

    #[test]
    fn unknown_sensitivity_is_refused_with_the_choices() {
        let refused = body(&["update", "NAME", "--sensitivity", "loud"]).unwrap_err();
        assert!(refused.contains("precise, balanced, broad"), "{refused}");
    }
}
