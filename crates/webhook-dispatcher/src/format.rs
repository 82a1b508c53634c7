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

/// The body, in full.
pub(crate) fn body(
    format: Format,
    name: ScanName,
    post: &Post,
) -> Result<Bytes, serde_json::Error> {
    let json = match format {
        Format::Earshot => webhook::body(name, post),
        Format::Slack => serde_json::to_vec(&slack::message(post)),
        Format::Discord => serde_json::to_vec(&discord::message(post)),
        Format::Teams => serde_json::to_vec(&teams::message(post)),
    };
    json.map(Bytes::from)
}

/// The smallest body of the format. It is for a chat service that refused the full one.
pub(crate) fn plain_body(
    format: Format,
    name: ScanName,
    post: &Post,
) -> Result<Bytes, serde_json::Error> {
    let message = match format {
        Format::Earshot => return body(format, name, post),
        Format::Slack => plain::slack(post),
        Format::Discord => plain::discord(post),
        Format::Teams => plain::teams(post),
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
