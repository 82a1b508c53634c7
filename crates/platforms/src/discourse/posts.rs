//! New replies, from the list of all posts.
//!
//! A new reply may take a request for the name of its category. [`crate::walk`] offers items without requests.

use domain::{Post, PostType, Timestamp};
use serde::Deserialize;

use super::{
    Discourse,
    shape::{self, PostsPage},
    topics::user,
};
use crate::{
    Cursor, PollError, PollLimits, Polled,
    paging::Pages,
    reading::{Made, Met, Reading},
    text,
};

/// Number of ids that an older site checks for one page.
const WINDOW: u64 = 50;
/// Number of consecutive pages without a post after which the list counts as read to its beginning, unless an earlier
/// poll has read posts further down.
const MAX_EMPTY: usize = 10;

pub(super) async fn poll(
    site: &Discourse,
    cursor: Option<&Cursor>,
    limits: &PollLimits,
) -> Result<Polled, PollError> {
    let mut reading = Reading::new(cursor, limits);
    let mut pages = Pages::new(&reading, limits);
    let mut before: Option<u64> = pages.position().and_then(|id| id.parse().ok());
    // Consecutive empty pages, including those of earlier polls.
    let mut empty = pages
        .after()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    while pages.go_on(&reading) {
        let read = read_page(site, before, &mut reading, &mut pages).await;
        let oldest = match read {
            Ok(oldest) => oldest,
            Err(error) => {
                if pages.fail(error)? {
                    before = None;
                    continue;
                }
                break;
            }
        };
        let end = pages.turn();
        let (last, end) = match (oldest, before) {
            (Some(oldest), _) => (oldest, end),
            // A range of ids without a readable post.
            (None, Some(before)) => (before.saturating_sub(WINDOW - 1), false),
            (None, None) => (0, true),
        };
        empty = if oldest.is_some() { 0 } else { empty + 1 };
        let next = last.saturating_sub(1);
        let stuck = before.is_some_and(|before| next >= before);
        // A long range may be private messages. `Pages` reports a gap if it does not end.
        let has_known_below = pages.follows_the_known() && !pages.reached_the_known();
        let is_beginning = empty >= MAX_EMPTY && !has_known_below;
        if end || next == 0 || stuck || is_beginning {
            return Ok(pages.finish(reading, None));
        }
        before = Some(next);
    }
    pages.set_after(empty.to_string());
    let left = before.map_or_else(String::new, |before| before.to_string());
    Ok(pages.finish(reading, Some(left)))
}

/// Offers the posts of a page. Returns the number of the oldest.
async fn read_page(
    site: &Discourse,
    before: Option<u64>,
    reading: &mut Reading,
    pages: &mut Pages,
) -> Result<Option<u64>, PollError> {
    let page: PostsPage = site.get(&site.posts(before), "posts").await?;
    let mut oldest = None;
    for value in &page.latest_posts {
        let post = match shape::Post::deserialize(value) {
            Ok(post) => post,
            Err(error) => {
                reading.set_aside(value, &error);
                continue;
            }
        };
        oldest = [oldest, Some(post.id)].into_iter().flatten().min();
        offer(site, &post, reading, pages).await?;
    }
    Ok(oldest)
}

async fn offer(
    site: &Discourse,
    post: &shape::Post,
    reading: &mut Reading,
    pages: &mut Pages,
) -> Result<(), PollError> {
    let native = post.id.to_string();
    let known = reading.knew(&native);
    let gone = post.is_reply() && post.is_gone();
    let id = format!("{}:p/{}", site.name, post.id);
    let is_old = reading.is_old(post.time());
    if gone && !known {
        // A moderator may approve it later, so it is not recorded.
        let met = if is_old { Met::Old } else { Met::Known };
        pages.met(met, false, post.time());
        return Ok(());
    }
    let wanted = post.is_reply() && !gone && !known && !is_old;
    let subforum = if wanted {
        Some(site.categories.subforum(site, post.category_id).await?)
    } else {
        None
    };
    let post_id = id.clone();
    // What a flag hides is often shown again. A re-check finds what stays hidden.
    if gone && post.is_deleted() {
        reading.deleted.push(id);
    }
    let met = reading.offer(&native, post.time(), |time| {
        subforum.map_or(Ok(None), |subforum| {
            made(site, post, post_id, subforum, time)
        })
    });
    pages.met(met, known, post.time());
    Ok(())
}

/// Builds the reply.
fn made(
    site: &Discourse,
    post: &shape::Post,
    id: String,
    subforum: domain::Subforum,
    time: Timestamp,
) -> Made {
    let author = text::line(post.username.as_deref().unwrap_or_default());
    let html = post.cooked.as_deref().ok_or("no text")?;
    let Some(body) = text::some_block(&text::from_html(html)) else {
        return Ok(None);
    };
    let title = text::line(post.topic_title.as_deref().unwrap_or_default());
    let slug = post.topic_slug.as_deref().filter(|slug| !slug.is_empty());
    let number = post.post_number.unwrap_or(1);
    let path = format!(
        "t/{}/{}/{number}",
        slug.unwrap_or("-"),
        post.topic_id.ok_or("no topic")?
    );
    Ok(Some(Post {
        post_type: PostType::ForumComment,
        time,
        id,
        url: site.below(&path).to_string(),
        title: Some(title).filter(|title| !title.is_empty()),
        text: Some(body),
        subforum: Some(subforum),
        user: user(site, author, post.user_id)?,
    }))
}
