//! Makes the changes of a plan.
//!
//! A Manager that was changed after the plan was made is left alone. A refused change does not stop the others; a
//! service that cannot be reached, or a key that may not, does.

use client::{Change as Patch, Client, Error, Request};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    super::{Failure, Given, one_line},
    document::editable,
    plan::{Action, Change, Plan},
};

/// Maximum number of creations that an earlier, deleted Manager answers.
const MAX_REPLAYS: usize = 20;

pub(super) async fn apply(client: &Client, namespace: &str, plan: &Plan) -> Result<(), Failure> {
    let mut done = [0_usize; 3];
    let mut failed = 0;
    let mut stopped = None;
    for change in &plan.changes {
        let outcome = match change.action {
            Action::Create => create(client, namespace, change).await,
            Action::Update => update(client, change).await,
            Action::Delete => delete(client, change).await,
        };
        match outcome {
            Ok(()) => done[change.action as usize] += 1,
            Err(failure) => {
                failed += 1;
                let nickname = one_line(&change.nickname);
                let place = one_line(&change.place);
                eprintln!("earshot: {nickname}  {place}: {}", failure.words());
                if ends(&failure) {
                    stopped = Some(failure);
                    break;
                }
            }
        }
    }
    let [created, changed, deleted] = done;
    let left = plan.changes.len() - done.iter().sum::<usize>() - failed;
    let summary = format!(
        "{created} created, {changed} changed, {deleted} deleted, {} unchanged, {failed} failed, {left} not tried",
        plan.unchanged
    );
    match (stopped, failed) {
        (Some(Failure::Api(error, _)), _) if error.refusal().is_none() => {
            eprintln!("{summary}");
            Err(Failure::Api(error, Given::default()))
        }
        (None, 0) => {
            eprintln!("{summary}");
            Ok(())
        }
        _ => Err(Failure::Local(summary)),
    }
}

/// Returns true if the next change would fail in the same way.
pub(super) fn ends(failure: &Failure) -> bool {
    match failure {
        Failure::Api(error, _) => {
            let status = error.refusal().map(|refusal| refusal.status);
            error.is_passing() || matches!(status, Some(401 | 403))
        }
        _ => false,
    }
}

/// Creates the Manager. The `Idempotency-Key` follows from the content, so that an `apply` that is repeated after a crash, or
/// runs twice at once with the same API key, creates one.
async fn create(client: &Client, namespace: &str, change: &Change) -> Result<(), Failure> {
    let collection = format!("{namespace}/managers");
    let mut deleted = String::new();
    for _ in 0..MAX_REPLAYS {
        let content = json!([collection, change.new, deleted]).to_string();
        let key = hex::encode(Sha256::digest(content));
        let request = Request::new(Method::POST, &collection).json(&change.new);
        let created: Value = client
            .call(request.idempotent_by(key))
            .await
            .map_err(|error| with_body(error, change))?;
        let name = created["name"].as_str().unwrap_or_default();
        match client.get::<Value>(name).await {
            // The answer was that of a Manager that was deleted in the meantime.
            Err(error) if error.refusal().is_some_and(|it| it.status == 404) => {
                deleted = name.to_owned();
            }
            other => return other.map(drop).map_err(Failure::from),
        }
    }
    let words = "it is deleted again each time it is created";
    Err(Failure::Local(words.to_owned()))
}

async fn update(client: &Client, change: &Change) -> Result<(), Failure> {
    let name = unchanged(client, change).await?;
    let mask = change.mask();
    let fields = mask.iter().filter(|&&field| !change.new[field].is_null());
    let body: Value = fields
        .map(|&field| (field.to_owned(), change.new[field].clone()))
        .collect();
    let mask = mask.join(",");
    let patch = Patch {
        body: &body,
        mask: Some(&mask),
    };
    let updated = client.update::<Value>(name, &patch).await;
    updated.map(drop).map_err(|error| with_body(error, change))
}

async fn delete(client: &Client, change: &Change) -> Result<(), Failure> {
    let name = unchanged(client, change).await?;
    client.delete(name, false).await.map_err(Failure::from)
}

/// Returns the Manager's name if it still is what the plan was made for.
async fn unchanged<'a>(client: &Client, change: &'a Change) -> Result<&'a str, Failure> {
    let name = change.name.as_deref().unwrap_or_default();
    let now: Value = client.get(name).await?;
    if editable(&now) != change.old {
        let words = "it was changed after the plan was made: look at a new plan";
        return Err(Failure::Local(words.to_owned()));
    }
    Ok(name)
}

fn with_body(error: Error, change: &Change) -> Failure {
    Failure::from(error).with(Given::body(&change.new))
}
