//! `/v1/namespaces/{namespaceId}/managers/{managerId}/feeds`
//!
//! A Manager has at most about two hundred feeds, so they are returned in one page, ordered by name.

use actix_web::web::Path;
use domain::{FeedName, Timestamp};
use serde::Serialize;
use store::feeds::{self, FeedDay, FeedIds, ROWS_OF_HEALTH};

use super::ManagerPath;
use crate::{
    ApiError, answer::Found, authenticate::Caller, pages, parent::Parent, query::Parameters,
};

#[derive(Serialize)]
pub(crate) struct Feeds {
    feeds: Vec<Feed>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Feed {
    feed: FeedName,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_poll_time: Option<Timestamp>,
    next_poll_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_post_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    posts_per_day: Option<f64>,
    scans_per_day: f64,
    gaps: u64,
    quarantined_posts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_quarantine: Option<Quarantine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
    days: Vec<Day>,
}

/// Counts of one UTC day.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Day {
    day: String,
    read: u64,
    late: u64,
    gone: u64,
    quarantined: u64,
    gap_count: u64,
    gaps: Vec<Gap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ids: Option<Ids>,
}

/// Counts of the ids that were checked on that day.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ids {
    up_to: u64,
    read: u64,
    other: u64,
    gone: u64,
    not_visible: u64,
    unexplained: u64,
    unexplained_ids: Vec<u64>,
}

impl From<FeedIds> for Ids {
    fn from(of: FeedIds) -> Self {
        Self {
            up_to: of.up_to,
            read: of.read,
            other: of.other,
            gone: of.gone,
            not_visible: of.not_visible,
            unexplained: of.unexplained,
            unexplained_ids: of.unexplained_ids,
        }
    }
}

#[derive(Serialize)]
struct Gap {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Timestamp>,
    to: Timestamp,
    reason: String,
    state: &'static str,
}

impl From<FeedDay> for Day {
    fn from(of: FeedDay) -> Self {
        let gaps = of.gaps.into_iter().map(|gap| Gap {
            from: gap.from,
            to: gap.to,
            reason: gap.reason,
            state: if gap.is_filled { "FILLED" } else { "OPEN" },
        });
        Self {
            day: of.day,
            read: of.posts,
            late: of.late,
            gone: of.gone,
            quarantined: of.quarantined,
            gap_count: of.gap_count,
            gaps: gaps.collect(),
            ids: of.ids.map(Ids::from),
        }
    }
}

#[derive(Serialize)]
struct Quarantine {
    time: Timestamp,
    reason: String,
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/feeds`
pub(crate) async fn of_manager(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Found<Feeds>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let (health, mut days) = pages::rows(&caller, async move |conn| {
        let health = feeds::health_of(conn, name).await?;
        if health.is_empty() {
            Parent::Manager(name).check(conn).await?;
        }
        query.none()?;
        let names: Vec<&FeedName> = health.iter().map(|of| &of.feed).collect();
        let days = feeds::days_of(conn, namespace, &names).await?;
        let rows = ROWS_OF_HEALTH.saturating_mul(health.len() as u64);
        Ok(((health, days), rows))
    })
    .await?;
    let feeds = health.into_iter().map(|of| Feed {
        days: days
            .remove(of.feed.as_str())
            .unwrap_or_default()
            .into_iter()
            .map(Day::from)
            .collect(),
        url: caller.state.feeds().page_of(&of.feed),
        feed: of.feed,
        state: of.state.as_str(),
        last_poll_time: of.last_poll_time,
        next_poll_time: of.next_poll_time,
        last_post_time: of.last_post_time,
        posts_per_day: of.posts_per_day.map(rounded),
        scans_per_day: rounded(of.scans_per_day),
        gaps: of.gaps,
        quarantined_posts: of.quarantined_posts,
        last_quarantine: of
            .last_quarantine
            .map(|(time, reason)| Quarantine { time, reason }),
        error: of.error,
        notice: of.notice,
    });
    Ok(Found(Feeds {
        feeds: feeds.collect(),
    }))
}

/// Rounds estimates to a hundredth.
fn rounded(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}
