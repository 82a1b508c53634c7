//! Topics that the list of the newest topics leaves out: those of categories that a site mutes for visitors.
//!
//! The list of all posts has their first posts. It is read every ten minutes.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use domain::Timestamp;
use outbound::large;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::{
    Discourse,
    shape::{Post, PostsPage},
};
use crate::reading::Reading;

const INTERVAL: Duration = Duration::from_mins(10);
/// Maximum number of pages in one look, each of fifty posts.
const MAX_PAGES: usize = 4;

/// The last look at a site's posts, in this process.
#[derive(Default)]
pub(super) struct LastLook(Mutex<Option<(Instant, Timestamp)>>);

/// Returns new topics by their first posts, without those in `listed`. A site that does not show the list has none.
pub(super) async fn topics(
    site: &Discourse,
    reading: &Reading,
    listed: &HashSet<u64>,
) -> Vec<(u64, Option<Timestamp>)> {
    let mut last = site.unlisted.0.lock().await;
    if last.is_some_and(|(at, _)| at.elapsed() < INTERVAL) {
        return Vec::new();
    }
    let since = last.map_or_else(|| reading.window_start(), |(_, time)| Some(time));
    let mut found = Vec::new();
    let mut before = None;
    for _ in 0..MAX_PAGES {
        let url = site.posts(before);
        let page = large::without_place(site.get::<PostsPage>(&url, "posts")).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                tracing::debug!(platform = site.name, %error, "the posts could not be read");
                break;
            }
        };
        let posts = page.latest_posts.iter();
        let posts: Vec<Post> = posts
            .filter_map(|post| Post::deserialize(post).ok())
            .collect();
        for post in &posts {
            let Some(topic) = post.topic_id.filter(|_| post.post_number == Some(1)) else {
                continue;
            };
            let name = topic.to_string();
            let time = reading.sane(post.time());
            let is_met = listed.contains(&topic) || reading.knew(&name) || reading.is_hidden(&name);
            if !is_met && !post.is_gone() && !reading.is_old(time) {
                found.push((topic, time));
            }
        }
        let oldest = posts.iter().min_by_key(|post| post.id);
        let Some(oldest) = oldest.filter(|oldest| oldest.time() >= since) else {
            break;
        };
        before = oldest.id.checked_sub(1);
    }
    *last = Some((Instant::now(), reading.now));
    found
}
