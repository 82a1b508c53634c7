//! The body of a request: our own, or the format of a chat service's incoming webhook.
//!
//! A post is untrusted text. In the bodies for chat services it can neither mention anyone nor add markup: it is in
//! fields that the service shows unchanged, or it is escaped. Every field stays within the service's limits, so
//! that no post is too long to be delivered. A service event is laid out like a post by Earshot, because its nicknames
//! and reasons are no more trusted.

use std::borrow::Cow;

use bytes::Bytes;
use domain::{Post, PostType, ServiceEvent, User, connection::Format};
use store::deliveries::Subject;

mod discord;
pub(crate) mod email;
mod limits;
mod plain;
mod slack;
mod teams;
mod text;

/// How much of a post is in a message for a chat service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Full,
    /// The smallest message, for a service that refused the full one.
    Plain,
    /// The smallest message, with the thread that only forum and media channels of Discord take, and require.
    PlainThread,
}

pub(crate) fn body(
    format: Format,
    shape: Shape,
    subject: &Subject,
) -> Result<Bytes, serde_json::Error> {
    let post: Cow<'_, Post> = match subject {
        Subject::Scan { post, .. } => Cow::Borrowed(post.as_ref()),
        Subject::Event(event) => Cow::Owned(laid_out(event)),
    };
    let post: &Post = &post;
    let message = match (format, shape) {
        // A mail has no body like this: `email` makes it.
        (Format::Earshot | Format::Email, _) => {
            let body = match subject {
                Subject::Scan { name, post } => webhook::body(*name, post),
                Subject::Event(event) => serde_json::to_vec(event),
            };
            return body.map(Bytes::from);
        }
        (Format::Slack, Shape::Full) => slack::message(post),
        (Format::Slack, _) => plain::slack(post),
        (Format::Discord, Shape::Full) => discord::message(post),
        (Format::Discord, Shape::Plain) => plain::discord(post),
        (Format::Discord, Shape::PlainThread) => plain::discord_thread(post),
        (Format::Teams, Shape::Full) => teams::message(post),
        (Format::Teams, _) => plain::teams(post),
    };
    serde_json::to_vec(&message).map(Bytes::from)
}

/// A service event as a post, with a sentence as its title.
fn laid_out(event: &ServiceEvent) -> Post {
    let (title, text) = event.summary();
    Post {
        post_type: PostType::ForumLink,
        time: event.time,
        id: event.id.to_string(),
        title: Some(title),
        text,
        url: String::new(),
        subforum: None,
        user: User {
            id: String::new(),
            name: "Earshot".to_owned(),
            url: String::new(),
        },
    }
}

/// Heading of a message: the post's title, or its author.
fn heading(post: &Post) -> String {
    match post.title.as_deref() {
        Some(title) if !text::is_blank(title) => title.to_owned(),
        _ if text::is_blank(&post.user.name) => "Post".to_owned(),
        _ => format!("Post by {}", post.user.name),
    }
}

/// Place, author and time of the post: `Self-hosting · ada · 2026-11-21 01:02 UTC`.
fn origin(post: &Post) -> String {
    let mut parts = Vec::new();
    if let Some(subforum) = &post.subforum {
        parts.push(subforum.name.clone());
    }
    parts.push(post.user.name.clone());
    parts.push(
        post.time
            .to_chrono()
            .format("%Y-%m-%d %H:%M UTC")
            .to_string(),
    );
    parts.join(" · ")
}

#[cfg(test)]
mod tests;
