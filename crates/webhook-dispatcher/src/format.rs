//! The body of a request: our own, or the format of a chat service's incoming webhook.
//!
//! A post is untrusted text. In the bodies for chat services it can neither mention anyone nor add markup: it is in
//! fields that the service shows unchanged, or it is escaped. Every field stays within the service's limits, so
//! that no post is too long to be delivered.

use bytes::Bytes;
use domain::{Post, ScanName, connection::Format};

mod discord;
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
    name: ScanName,
    post: &Post,
) -> Result<Bytes, serde_json::Error> {
    let message = match (format, shape) {
        (Format::Earshot, _) => return webhook::body(name, post).map(Bytes::from),
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
