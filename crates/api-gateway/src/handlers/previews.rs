//! `/v1/namespaces/{namespaceId}/managers/{managerId}:preview`
//!
//! By the matching crate, as the scanner does it. Nothing is stored, and the bound on a day's Scans is
//! not asked: it depends on what else the day brings.

use actix_web::web::{self, Data, Path};
use anyhow::Context as _;
use domain::{
    Instructions, Issue, Issues, Manager, Post, PostType, Timestamp,
    manager::SourceType,
    preview::{Preview, PreviewReason, PreviewResult},
};
use matching::{Candidate, Kept, Plan, PlanError, PostText, Reason, Screen};
use serde::Serialize;
use store::{managers, namespaces};

use super::ManagerPath;
use crate::{ApiError, answer::Found, authenticate::Caller, body::RawJson, state::AppState};

#[derive(Serialize)]
pub(crate) struct Previewed {
    results: Vec<PreviewResult>,
}

/// `POST /v1/namespaces/{namespaceId}/managers/{managerId}:preview`
pub(crate) async fn preview(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Previewed>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let name = path.name(namespace);
    let (manager, muted) = match &name {
        Ok(name) => {
            let mut conn = state.connection().await?;
            let of_all = namespaces::get(&mut conn, caller.key.account, namespace).await?;
            let muted = of_all.map(|namespace| namespace.mutes).unwrap_or_default();
            (managers::get(&mut conn, *name).await?, muted)
        }
        Err(_) => (None, Vec::new()),
    };
    let source = manager.as_ref().map(|manager| manager.source.source_type);
    let rules = state.manager_rules();
    let preview = body
        .parse(|json| Preview::parse(json, source, rules.feeds))
        .await?;
    name?;
    let manager = manager.ok_or(ApiError::NotFound("manager"))?;
    let plan = plan(&manager, preview.instructions)?;
    let now = Timestamp::now();
    // Some milliseconds of computing at worst, which nobody else should wait for.
    let results = web::block(move || {
        let screen = &manager.screen;
        let screens = [
            Screen::new(&muted, &[]),
            Screen::new(&screen.mutes, &screen.languages),
        ];
        let watched = Watched::of(&manager, &plan.1);
        let posts = preview.posts.iter();
        posts
            .map(|post| judge(post, &plan.0, &watched, &screens, now))
            .collect()
    })
    .await
    .context("preview posts")
    .map_err(ApiError::Internal)?;
    Ok(Found(Previewed { results }))
}

/// The plan of the draft, or else of the instructions at work.
fn plan(manager: &Manager, draft: Option<Instructions>) -> Result<(Plan, Instructions), ApiError> {
    let instructions = draft
        .or_else(|| manager.instructions.clone())
        .ok_or_else(|| Issues::one("instructions", Issue::Required))?;
    let plan = Plan::compile(&instructions).map_err(|error| {
        let field = format!("instructions.{}", error.field());
        Issues::one(
            field,
            match error {
                PlanError::NoWords { .. } => Issue::InvalidFormat,
                PlanError::OutOfRange { .. } => Issue::OutOfRange,
                PlanError::EmptyGroup { .. } => Issue::TooShort,
            },
        )
    })?;
    Ok((plan, instructions))
}

/// Where posts must come from to be seen. Which of a platform's feeds a post stands in is not known, so
/// that one of a platform that is watched at all is taken to be seen.
struct Watched {
    source: SourceType,
    platforms: Vec<String>,
}

impl Watched {
    fn of(manager: &Manager, instructions: &Instructions) -> Self {
        let feeds = instructions.feeds.iter();
        Self {
            source: manager.source.source_type,
            platforms: feeds.map(|feed| feed.platform().to_owned()).collect(),
        }
    }

    /// Without feeds in a draft, those of the source are meant. Ids begin with their platform.
    fn sees(&self, post: &Post) -> bool {
        let source = match post.post_type {
            PostType::ForumLink | PostType::ForumComment => SourceType::Forum,
            PostType::MicroblogTweet => SourceType::Microblog,
            PostType::NetworkPost => SourceType::Network,
        };
        let platform = post.id.split_once(':').map(|(platform, _)| platform);
        let watched = |platform: &str| self.platforms.iter().any(|one| one == platform);
        source == self.source && (self.platforms.is_empty() || platform.is_none_or(watched))
    }
}

fn judge(
    post: &Post,
    plan: &Plan,
    watched: &Watched,
    screens: &[Option<Screen>],
    now: Timestamp,
) -> PreviewResult {
    let text = PostText::from(post);
    let decision = matching::evaluate(plan, &text, None);
    let reason = if watched.sees(post) {
        match decision.reason {
            Reason::Matched => PreviewReason::Matched,
            Reason::BelowThreshold | Reason::NoTerm => PreviewReason::BelowThreshold,
            Reason::Require => PreviewReason::Require,
            Reason::Exclude => PreviewReason::Exclude,
            Reason::NotWatched => PreviewReason::NotWatched,
        }
    } else {
        PreviewReason::NotWatched
    };
    let kept = || {
        let candidate = Candidate::new(post, &text);
        let mut screens = screens.iter().flatten();
        screens.find_map(|screen| screen.keeps_out(&candidate, now))
    };
    let reason = match reason {
        PreviewReason::Matched => match kept() {
            None => PreviewReason::Matched,
            Some(Kept::Muted) => PreviewReason::Muted,
            Some(Kept::Language) => PreviewReason::Language,
        },
        refused => refused,
    };
    PreviewResult {
        value: reason == PreviewReason::Matched,
        matched: matching::explain(decision, &text),
        reason,
    }
}
