//! Managers as code: YAML files for review, compared with the service and applied to it.

mod apply;
mod document;
mod plan;
mod posts;
mod yaml;

use std::{
    io::{IsTerminal, Write, stderr, stdin},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use client::{Client, Query};
use domain::Timestamp;
use serde_json::{Value, json};

use self::{
    plan::Plan,
    posts::{Side, Span},
};
use super::{Failure, Place, escaped, one_line, print, resources};

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
    /// Show which posts of the last N days the changed Managers would gain and lose, for the first 20 of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3))]
    days: Option<u32>,
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
    let (client, namespace, mut plan) = it.files.plan().await?;
    let compared = match it.days {
        Some(days) => compare_posts(&client, &namespace, &mut plan, days).await,
        None => Ok(()),
    };
    print(&match it.output {
        PlanForm::Text => plan.text(),
        PlanForm::Json => format!("{}\n", escaped(&plan.json().to_string())),
    })?;
    compared?;
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

/// Adds the posts of the last days that changed Managers would gain and lose. Fails at the end if those of a Manager could
/// not be compared, so that the plan can be shown.
async fn compare_posts(
    client: &Client,
    namespace: &str,
    plan: &mut Plan,
    days: u32,
) -> Result<(), Failure> {
    let end = Timestamp::now();
    let start = end.minus(Duration::from_hours(24) * days);
    let (mut compared, mut failed) = (0, 0);
    let mut stopped = None;
    for change in &mut plan.changes {
        let Some(sides) = change.sides(namespace) else {
            continue;
        };
        let is_asked = !sides.iter().any(|side| matches!(side, Side::Unknown(_)));
        compared += usize::from(is_asked);
        if is_asked && compared > MAX_COMPARED {
            change.posts = Some(json!({"unknown": "not compared: too many Managers changed"}));
            continue;
        }
        if is_asked && stopped.is_some() {
            change.posts = Some(json!({"unknown": "not compared: an earlier request failed"}));
            continue;
        }
        change.posts = Some(
            match posts::compare(client, &sides, Span { start, end }).await {
                Ok(posts) => posts,
                Err(failure) => {
                    let (nickname, place) = (one_line(&change.nickname), one_line(&change.place));
                    let words = format!("{nickname}  {place}: its posts cannot be compared");
                    if apply::ends(&failure) {
                        eprintln!("earshot: {words}");
                        stopped = Some(failure);
                    } else {
                        eprintln!("earshot: {words}: {}", failure.words());
                        failed += 1;
                    }
                    json!({"unknown": "cannot be compared: see the error"})
                }
            },
        );
    }
    match (stopped, failed) {
        (Some(failure), _) => Err(failure),
        (None, 0) => Ok(()),
        (None, failed) => {
            let words = format!("the posts of {failed} of the changed Managers cannot be compared");
            Err(Failure::Local(words))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use client::{Answer, Client, Retries};
    use serde_json::{Value, json};

    use super::{
        Failure, MAX_COMPARED, compare_posts,
        document::{Document, canonical},
        plan::{self, Plan},
    };

    const NAMESPACE: &str = "namespaces/n";

    /// Returns a client of a service that answers the body of a request with a status and a body.
    fn service(answer: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static) -> Client {
        let answerer = move |request: http::Request<Vec<u8>>| -> Answer {
            let (status, body) = answer(&serde_json::from_slice(request.body()).unwrap());
            let response = http::Response::builder().status(status);
            let response = response.body(body.to_string().into_bytes()).unwrap();
            Box::pin(async move { response })
        };
        let client = Client::new("http://127.0.0.1/".parse().unwrap(), "esk_x".into());
        let client = client.unwrap().with_retries(Retries::NONE);
        client.answered_by(Arc::new(answerer))
    }

    /// Returns a Manager of posts with this word.
    fn body(word: &str) -> Value {
        json!({
            "nickname": word, "type": "FEED_MANAGER", "source": {"type": "FORUM"},
            "instructions": {"require": [[word]]}
        })
    }

    fn refusal(code: u16, field: &str) -> Value {
        json!({
            "code": code, "message": "refused",
            "details": [{"field": field, "issue": "invalid_format"}]
        })
    }

    fn planned(bodies: &[Value], managers: &[Value]) -> Plan {
        let documents = bodies.iter().map(|body| Document {
            place: "f.yaml:1".to_owned(),
            name: None,
            spec: canonical(body).unwrap(),
        });
        plan::plan(NAMESPACE, documents.collect(), managers, false).unwrap()
    }

    /// Returns why the posts of a change are unknown.
    fn unknown(plan: &Plan, at: usize) -> &str {
        let posts = plan.changes[at].posts.as_ref().unwrap();
        posts["unknown"].as_str().unwrap_or_default()
    }

    #[tokio::test]
    async fn only_managers_that_can_be_compared_count_for_the_limit() {
        let mut bodies: Vec<Value> = (0..=MAX_COMPARED)
            .map(|at| body(&format!("w{at}")))
            .collect();
        bodies.push(json!({
            "nickname": "pages", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
            "input": {"type": "STRUCTURED", "urls": ["https://example.com/"], "focus": {"type": "SALES"}}
        }));
        let mut plan = planned(&bodies, &[]);
        let client = service(|_| (200, json!({"results": []})));
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        compared.unwrap();
        assert_eq!(unknown(&plan, MAX_COMPARED - 1), "");
        assert!(unknown(&plan, MAX_COMPARED).contains("too many"));
        assert!(unknown(&plan, MAX_COMPARED + 1).contains("compiled"));
    }

    #[tokio::test]
    async fn plan_is_complete_if_the_posts_of_a_manager_cannot_be_compared() {
        let mut plan = planned(&["refused", "other"].map(body), &[]);
        let is_refused = |body: &Value| body["instructions"]["require"] == json!([["refused"]]);
        let client = service(move |body| match is_refused(body) {
            true => (400, refusal(400, "mutes[0].value")),
            false => (200, json!({"results": []})),
        });
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        assert!(matches!(compared, Err(Failure::Local(_))), "{compared:?}");
        assert!(unknown(&plan, 0).starts_with("cannot be compared"));
        assert_eq!(unknown(&plan, 1), "");
    }

    #[tokio::test]
    async fn service_that_fails_is_not_asked_again() {
        let mut plan = planned(&["a", "b"].map(body), &[]);
        let client = service(|_| (503, refusal(503, "")));
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        assert!(matches!(compared, Err(Failure::Api(..))), "{compared:?}");
        assert!(unknown(&plan, 0).starts_with("cannot be compared"));
        assert!(unknown(&plan, 1).starts_with("not compared"));
    }

    #[tokio::test]
    async fn present_instructions_that_are_no_longer_accepted_are_no_failure() {
        let mut present = canonical(&body("a")).unwrap();
        present["name"] = format!("{NAMESPACE}/managers/1").into();
        present["mode"] = "MANUAL".into();
        let mut muted = body("a");
        muted["mutes"] = json!([{"type": "TERM", "value": "jobs"}]);
        let refusing = |field: &'static str| {
            service(move |body| match body["instructions"].is_null() {
                true => (200, json!({"results": []})),
                false => (400, refusal(400, field)),
            })
        };
        let mut plan = planned(std::slice::from_ref(&muted), std::slice::from_ref(&present));
        let client = refusing("instructions.feeds[0]");
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        compared.unwrap();
        assert!(unknown(&plan, 0).contains("no longer accepts"));

        // What the file changes is refused as by `apply`.
        let client = refusing("mutes[0].value");
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        compared.unwrap_err();
        let mut changed = muted;
        changed["instructions"]["exclude"] = json!(["hiring"]);
        let mut plan = planned(&[changed], &[present]);
        let client = refusing("instructions.feeds[0]");
        let compared = compare_posts(&client, NAMESPACE, &mut plan, 1).await;
        compared.unwrap_err();
    }
}
