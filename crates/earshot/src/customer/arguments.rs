//! Arguments of the command line.

use std::{num::NonZeroUsize, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use domain::Sensitivity;

use super::{body::Body, output::Form, place::Place};

/// Arguments of all commands.
#[derive(Debug, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The Namespace, as name or id; not needed if the key has access to only one.
    #[arg(long, global = true, env = "EARSHOT_NAMESPACE", value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Output format; by default a table on a terminal and JSON Lines elsewhere.
    #[arg(long, short, global = true, value_enum)]
    pub(crate) output: Option<Form>,
    /// Run the request in a transaction that is rolled back (`x-test`), and print the answer.
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
}

// Lists with more arguments are enum variants with the same name, and a clap group name must be unique.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct List {
    /// Filter such as `createTime > "2026-11-21T00:00:00Z"`; passed to the API unchanged.
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Order such as `createTime asc`.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) order_by: Option<String>,
    /// Stop after this many items; list all by default.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<NonZeroUsize>,
    /// Columns of tables and CSV, such as `name,post.url`.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The resource's `name`; the id is sufficient for Managers and Connections.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) named: Named,
    #[command(flatten)]
    pub(crate) body: Body,
    /// Change only these fields, such as `nickname,input.focus`.
    #[arg(long, value_name = "FIELDS")]
    pub(crate) update_mask: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Delete even if it is in use or not empty.
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
    /// List the Namespaces that the key can access.
    List(List),
    /// Show a Namespace.
    Get(Named),
    /// Create a Namespace.
    Create(Body),
    /// Change a Namespace.
    Update(Update),
    /// Delete a Namespace.
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
    /// List the Managers of a Namespace.
    List(List),
    /// Show a Manager, with its instructions.
    Get(Named),
    /// Create a Manager.
    Create(CreateManager),
    /// Change a Manager.
    Update(UpdateManager),
    /// Delete a Manager and its Scans.
    Delete(Delete),
    /// Read the Manager's pages again, and recompile its instructions.
    Apply(Named),
    /// Show how a Manager would decide on posts: given as JSON, recent ones, or by their URLs.
    Preview(Preview),
    /// Search the past posts of a Manager's feeds.
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
    /// Try this many of the newest posts of its feeds.
    #[arg(long, value_name = "N")]
    pub(crate) recent: Option<u32>,
    /// URL of a post that was read; can be repeated.
    #[arg(long = "post-url", value_name = "URL")]
    pub(crate) urls: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Backfill {
    #[command(flatten)]
    pub(crate) named: Named,
    /// How far back to search, such as `7d`.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) since: Duration,
    /// Deliver the found posts, too.
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
    /// List the Connections of a Namespace.
    List(List),
    /// Show a Connection.
    Get(Named),
    /// Create a Connection. Pass secrets in `--file`, not on the command line. Set `signingSecrets`, so that your
    /// server can tell genuine requests from forged ones. For e-mail, `format` is `EMAIL`, and `url` is `mailto:` and up to
    /// ten addresses, separated by commas.
    Create(Body),
    /// Change a Connection.
    Update(Update),
    /// Delete a Connection.
    Delete(Delete),
    /// Send a test Scan now, and print the result.
    Test(Named),
    /// Enable a Connection that was disabled.
    Enable(Named),
    /// Repeat the deliveries of a time span.
    Replay(Replay),
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    #[command(flatten)]
    pub(crate) named: Named,
    /// Start of the time span, as a time ago such as `2h`.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) since: Duration,
    /// End of the time span, as a time ago; now by default.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) until: Option<Duration>,
    /// Only deliveries in this state, such as `EXHAUSTED`; can be repeated.
    #[arg(long = "state", value_name = "STATE")]
    pub(crate) states: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditVerb {
    /// List the audit events of a Namespace, newest first; with `--namespace -` those of the whole account. Needs a key
    /// of role OWNER.
    List(List),
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
    /// List the Scans of a Namespace, or of one Manager, newest first.
    List {
        #[command(flatten)]
        list: List,
        /// Only Scans of this Manager.
        #[arg(long, value_name = "NAME")]
        manager: Option<String>,
    },
    /// Show a Scan.
    Get(Named),
    /// Give feedback on a Scan: `--set value=false`, `--set labels='["not for us"]'`.
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
    /// List the deliveries of a Namespace, or to one Connection, newest first.
    List {
        #[command(flatten)]
        list: List,
        /// Only deliveries to this Connection.
        #[arg(long, value_name = "NAME")]
        connection: Option<String>,
    },
    /// Show a delivery, with its attempts.
    Get(Named),
    /// Repeat a delivery now.
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

    /// Returns the body that a command line sends.
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
