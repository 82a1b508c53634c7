//! `/v1/namespaces/{namespaceId}/managers/{managerId}:preview`, and the same for a draft of a Manager
//!
//! The matching crate decides, as in the scanner. Nothing is stored. The daily bound on Scans is not applied,
//! because it depends on the other posts of the day. Posts come from the client, or from the recent posts of feeds,
//! which are kept for this.

use actix_web::web::Path;
use anyhow::Context as _;
use domain::{
    FeedName, Id, Instructions, Issue, Issues, Match, Post, PostType, Timestamp,
    manager::SourceType,
    preview::{Preview, PreviewDraft, PreviewReason, PreviewResult, Subject},
    screen::PostKind,
};
use matching::{Candidate, Kept, Plan, PlanError, PostText, Reason, Screen};
use runtime::background;
use serde::Serialize;
use store::{AsyncPgConnection, managers, namespaces, recent_posts};

use super::{ManagerPath, NamespacePath};
use crate::{ApiError, answer::Found, authenticate::Caller, body::RawJson};

/// Size of the largest stored posts.
const MAX_POST_BYTES: usize = 160 * 1024;
/// URI schemes of ids that are the same on every platform that has the post.
const SCHEMES: [&str; 5] = ["at", "http", "https", "tag", "urn"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Previewed {
    results: Vec<PreviewResult>,
    /// Time since which all posts of the feeds are stored, if recent ones were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_since: Option<Timestamp>,
}

/// A Manager, or a draft of one, that decides on posts.
struct Judge {
    plan: Plan,
    watched: Watched,
    screen: domain::screen::Screen,
}

/// `POST /v1/namespaces/{namespaceId}/managers/{managerId}:preview`
pub(crate) async fn preview(
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Previewed>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let body = body.read().await?;
    let name = path.name()?;
    let manager = managers::get(&mut *caller.connection().await?, name).await?;
    let manager = manager.ok_or(ApiError::NotFound("manager"))?;
    let source = manager.source.source_type;
    let feeds = caller.state.feeds().of_account(&caller.key.account_name);
    let preview = body.parse(|json| Preview::parse(json, source, &feeds))?;
    let draft = preview
        .instructions
        .or_else(|| manager.instructions.clone());
    let (plan, instructions) = plan(draft)?;
    let at_work = manager.instructions.unwrap_or_default().feeds;
    let judge = Judge {
        plan,
        watched: Watched::new(source, &manager.screen, instructions, at_work),
        screen: manager.screen,
    };
    previewed(&caller, namespace, judge, preview.subject).await
}

/// `POST /v1/namespaces/{namespaceId}/managers:preview`
pub(crate) async fn preview_draft(
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Found<Previewed>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let feeds = caller.state.feeds().of_account(&caller.key.account_name);
    let body = body.read().await?;
    let draft = body.parse(|json| PreviewDraft::parse(json, &feeds))?;
    let (plan, instructions) = plan(draft.preview.instructions)?;
    let newest = feeds.newest(draft.source);
    let judge = Judge {
        plan,
        watched: Watched::new(draft.source, &draft.screen, instructions, newest),
        screen: draft.screen,
    };
    previewed(&caller, namespace, judge, draft.preview.subject).await
}

async fn previewed(
    caller: &Caller,
    namespace: Id,
    judge: Judge,
    subject: Subject,
) -> Result<Found<Previewed>, ApiError> {
    // Many previews of one account would keep all cores busy.
    let permit = caller.state.preview_for(caller.key.account).await?;
    // The posts can take much memory, and are read at once.
    let mut reserved = match most_stored(&subject) {
        0 => None,
        posts => Some(caller.reserve(posts as usize * MAX_POST_BYTES).await?),
    };
    let (muted, (tried, kept_since)) = {
        let mut conn = caller.connection().await?;
        let of_all = namespaces::get(&mut conn, caller.key.account, namespace).await?;
        let muted = of_all.map(|namespace| namespace.mutes).unwrap_or_default();
        let tried = tried(&mut conn, caller, namespace, subject, &judge.watched).await?;
        (muted, tried)
    };
    if let Some(reserved) = &mut reserved {
        let posts = tried.iter().filter_map(|tried| tried.post.as_ref());
        reserved.keep(posts.map(|(post, _)| bytes_of(post)).sum());
    }
    let now = Timestamp::now();
    let (results, reserved) = background::spawn(move || {
        // Both are held until the posts are matched, even if the client leaves.
        let _permit = permit;
        let screens = [
            Screen::new(&muted, &[]),
            Screen::new(&judge.screen.mutes, &judge.screen.languages),
        ];
        let judged = tried.into_iter().map(|tried| {
            let Some((post, feeds)) = tried.post else {
                return never_seen(tried.url);
            };
            let sees = match &feeds {
                Some(feeds) => judge.watched.watches(feeds),
                None => judge.watched.sees(&post),
            };
            PreviewResult {
                url: tried.url,
                ..decide(post, feeds.is_some(), &judge.plan, sees, &screens, now)
            }
        });
        (judged.collect(), reserved)
    })
    .await
    .context("preview posts")
    .map_err(ApiError::Internal)?;
    caller.keep(reserved);
    Ok(Found(Previewed {
        results,
        kept_since,
    }))
}

/// Returns the largest number of stored posts that a preview reads.
fn most_stored(subject: &Subject) -> u32 {
    match subject {
        Subject::Given(_) => 0,
        Subject::Recent(recent) => recent.count,
        Subject::Urls(_) => recent_posts::MAX_AT_URLS,
    }
}

fn bytes_of(post: &Post) -> usize {
    let parts = [&post.title, &post.text];
    parts.into_iter().flatten().map(String::len).sum()
}

/// Returns the instructions with their plan.
fn plan(instructions: Option<Instructions>) -> Result<(Plan, Instructions), ApiError> {
    let instructions = instructions.ok_or_else(|| Issues::one("instructions", Issue::Required))?;
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

/// One post to try.
struct Tried {
    /// Address as given in the request.
    url: Option<String>,
    /// The post, if it was found. A stored post comes with the feeds that returned it.
    post: Option<(Post, Option<Vec<FeedName>>)>,
}

/// Returns the posts in the order of the request; recent posts are newest first, with the time since which all are stored.
async fn tried(
    conn: &mut AsyncPgConnection,
    caller: &Caller,
    namespace: Id,
    subject: Subject,
    watched: &Watched,
) -> Result<(Vec<Tried>, Option<Timestamp>), ApiError> {
    let of = |post: Post, feeds| Tried {
        url: None,
        post: Some((post, feeds)),
    };
    match subject {
        Subject::Given(posts) => {
            let tried = posts.into_iter().map(|post| of(post, None));
            Ok((tried.collect(), None))
        }
        Subject::Recent(recent) => {
            // A draft may name any feed. Posts are shown only of feeds that this Namespace watches or that the
            // operator configured.
            let configured = caller.state.feeds().of_account(&caller.key.account_name);
            let mut seen = recent_posts::watched(conn, namespace, &watched.feeds).await?;
            seen.extend(
                watched
                    .feeds
                    .iter()
                    .filter(|feed| configured.is_configured(feed) && !seen.contains(feed))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
            let (account, window) = (caller.key.account, caller.state.backfill);
            let since = recent_posts::kept_since(conn, account, &seen, window).await?;
            let kept = recent_posts::newest(conn, &seen, recent).await?;
            let tried = kept
                .into_iter()
                .map(|kept| of(kept.post, Some(vec![kept.feed])));
            Ok((tried.collect(), since))
        }
        Subject::Urls(urls) => {
            let kept = recent_posts::by_url(conn, namespace, &urls).await?;
            let tried = urls.into_iter().map(|url| {
                let at_url = || {
                    kept.iter()
                        .filter(|kept| recent_posts::is_at(&kept.post, &url))
                };
                let first = at_url().next().map(|kept| kept.post.clone());
                let post = first.map(|post| {
                    let same = at_url().filter(|kept| kept.post.id == post.id);
                    let feeds = same.map(|kept| kept.feed.clone()).collect();
                    (post, Some(feeds))
                });
                Tried {
                    url: Some(url),
                    post,
                }
            });
            Ok((tried.collect(), None))
        }
    }
}

/// Feeds that posts must come from.
struct Watched {
    source: SourceType,
    kinds: Vec<PostKind>,
    feeds: Vec<FeedName>,
}

impl Watched {
    /// `otherwise` are the feeds of instructions without any.
    fn new(
        source: SourceType,
        screen: &domain::screen::Screen,
        instructions: Instructions,
        otherwise: Vec<FeedName>,
    ) -> Self {
        let feeds = match instructions.feeds.is_empty() {
            true => otherwise,
            false => instructions.feeds,
        };
        Self {
            source,
            kinds: screen.kinds.iter().collect(),
            feeds,
        }
    }

    fn watches(&self, feeds: &[FeedName]) -> bool {
        feeds.iter().any(|feed| self.feeds.contains(feed))
    }

    /// Returns true if the Manager may see the post. It is unknown which of a platform's feeds contain a post that the
    /// client sends, so any watched feed of the platform is enough. A post whose id does not name its platform counts
    /// as one of a watched platform.
    fn sees(&self, post: &Post) -> bool {
        let (source, kind) = match post.post_type {
            PostType::ForumLink => (SourceType::Forum, PostKind::Post),
            PostType::ForumComment => (SourceType::Forum, PostKind::Comment),
            PostType::MicroblogTweet => (SourceType::Microblog, PostKind::Post),
            PostType::NetworkPost => (SourceType::Network, PostKind::Post),
        };
        let platform = post.id.split_once(':').map(|(platform, _)| platform);
        let platform = platform.filter(|platform| !SCHEMES.contains(platform));
        let watched = |platform: &str| self.feeds.iter().any(|feed| feed.platform() == platform);
        source == self.source
            && self.kinds.contains(&kind)
            && (self.feeds.is_empty() || platform.is_none_or(watched))
    }
}

fn never_seen(url: Option<String>) -> PreviewResult {
    PreviewResult {
        url,
        post: None,
        value: false,
        matched: Match::default(),
        reason: PreviewReason::NeverSeen,
    }
}

fn decide(
    post: Post,
    shows: bool,
    plan: &Plan,
    sees: bool,
    screens: &[Option<Screen>],
    now: Timestamp,
) -> PreviewResult {
    let text = PostText::from(&post);
    let decision = matching::evaluate(plan, &text, None);
    let reason = if sees {
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
        let candidate = Candidate::new(&post, &text);
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
    let matched = matching::explain(decision, &text);
    PreviewResult {
        url: None,
        value: reason == PreviewReason::Matched,
        matched,
        reason,
        // A large post is not copied.
        post: shows.then_some(post),
    }
}
