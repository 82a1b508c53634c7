//! Managers as code: YAML files for review, compared with the service and applied to it.

mod apply;
mod document;
mod plan;
mod yaml;

use std::{
    io::{IsTerminal, Write, stderr, stdin},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use client::{Client, Query};
use serde_json::{Value, json};

use self::plan::{Action, Plan};
use super::{Failure, Place, escaped, print, resources};

/// Maximum number of Managers whose posts are compared.
const MAX_COMPARED: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct Common {
    #[command(flatten)]
    place: Place,
    /// The Namespace, as name or id; not needed if the key has access to only one.
    #[arg(long, env = "EARSHOT_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    #[command(flatten)]
    common: Common,
    /// YAML file, folder with .yaml and .yml files, or `-` for standard input; can be repeated.
    #[arg(long = "file", short, value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Delete the Managers of the Namespace that are in no file.
    #[arg(long)]
    prune: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    files: Files,
    /// Show which of the N newest posts a Manager with changed `instructions` would gain and lose, for the first 20 of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    posts: Option<u32>,
    /// Output format.
    #[arg(long, short, value_enum, default_value_t)]
    output: PlanForm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PlanForm {
    /// A plan for people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    files: Files,
    /// Do not ask before the changes are made.
    #[arg(long)]
    yes: bool,
}

/// Prints all Managers of the Namespace as YAML, in the order of their names.
pub(crate) async fn export(it: Export) -> Result<(), Failure> {
    let (client, namespace) = it.common.open().await?;
    let mut text = String::new();
    for manager in managers(&client, &namespace).await? {
        text += "---\nkind: Manager\n";
        let spec = document::editable(&manager);
        let fields = document::FIELDS
            .into_iter()
            .filter(|&field| !spec[field].is_null());
        let fields = fields.map(|field| (field, &spec[field]));
        for (field, value) in [("name", &manager["name"])].into_iter().chain(fields) {
            let field = std::collections::BTreeMap::from([(field, value)]);
            let yaml = serde_yaml_ng::to_string(&field);
            text += &yaml.map_err(|error| Failure::Local(error.to_string()))?;
        }
    }
    print(&text)
}

/// Prints the plan; fails with its own exit code if something would change.
pub(crate) async fn diff(it: Diff) -> Result<(), Failure> {
    let (client, _, mut plan) = it.files.plan().await?;
    if let Some(recent) = it.posts {
        compare_posts(&client, &mut plan, recent).await?;
    }
    print(&match it.output {
        PlanForm::Text => plan.text(),
        PlanForm::Json => format!("{}\n", escaped(&plan.json().to_string())),
    })?;
    match plan.changes.is_empty() {
        true => Ok(()),
        false => Err(Failure::Differs),
    }
}

/// Prints the plan, asks, and makes the changes.
pub(crate) async fn apply(it: Apply) -> Result<(), Failure> {
    let may_ask =
        stdin().is_terminal() && !it.files.files.iter().any(|path| path == Path::new("-"));
    if !it.yes && !may_ask {
        return Err(Failure::usage(
            "no terminal to ask on: give --yes to make the changes",
        ));
    }
    let (client, namespace, plan) = it.files.plan().await?;
    print(&plan.text())?;
    if plan.changes.is_empty() {
        return Ok(());
    }
    if !it.yes && !confirmed()? {
        return Err(Failure::Local("nothing was changed".to_owned()));
    }
    apply::apply(&client, &namespace, &plan).await
}

fn confirmed() -> Result<bool, Failure> {
    eprint!("Make these changes? [y/N] ");
    stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl Common {
    async fn open(&self) -> Result<(Client, String), Failure> {
        let client = self.place.client()?;
        let namespace = resources::namespace(&client, self.namespace.as_deref()).await?;
        Ok((client, namespace))
    }
}

impl Files {
    async fn plan(&self) -> Result<(Client, String, Plan), Failure> {
        let documents = document::read(&self.files)?;
        // An empty checkout must not delete everything.
        if self.prune && documents.is_empty() {
            return Err(Failure::usage(
                "the files have no Manager: --prune would delete all of them",
            ));
        }
        let (client, namespace) = self.common.open().await?;
        let managers = managers(&client, &namespace).await?;
        let plan = plan::plan(&namespace, documents, &managers, self.prune)?;
        Ok((client, namespace, plan))
    }
}

async fn managers(client: &Client, namespace: &str) -> Result<Vec<Value>, Failure> {
    let collection = format!("{namespace}/managers");
    let pages = client.pages(&collection, Query::default().ordered("name asc"));
    Ok(pages.all().await?)
}

/// Adds what changed instructions would gain and lose. A changed `input` is compiled first when it is applied.
async fn compare_posts(client: &Client, plan: &mut Plan, recent: u32) -> Result<(), Failure> {
    let mut compared = 0;
    for change in &mut plan.changes {
        let mask = change.mask();
        if change.action != Action::Update
            || !(mask.contains(&"instructions") || mask.contains(&"input"))
        {
            continue;
        }
        let unknown = |why: &str| Some(json!({"unknown": why}));
        if change.new["instructions"].is_null() || change.old["instructions"].is_null() {
            change.posts = unknown("unknown until the input is compiled");
            continue;
        }
        if compared == MAX_COMPARED {
            change.posts = unknown("not compared: too many Managers changed");
            continue;
        }
        compared += 1;
        let name = change.name.as_deref().unwrap_or_default();
        let draft = |instructions: &Value| json!({"recent": recent, "instructions": instructions});
        let old: Value = client
            .act(name, "preview", &draft(&change.old["instructions"]))
            .await?;
        let new: Value = client
            .act(name, "preview", &draft(&change.new["instructions"]))
            .await?;
        change.posts = Some(plan::compare(&old, &new));
    }
    Ok(())
}
