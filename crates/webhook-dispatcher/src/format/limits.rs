//! Limits of the chat services, for text as it is sent: escaped, and in UTF-16 units, the strictest count of any
//! service, unless stated otherwise. `tests/judge.rs` checks messages against the services' own numbers.

/// Slack: <https://docs.slack.dev/reference/block-kit/blocks>. Text objects have at most 3,000 characters, a header
/// 150. Mattermost and others show only `text`; a post there has at most 16,383 characters
/// (<https://developers.mattermost.com/integrate/webhooks/incoming/>).
pub(super) mod slack {
    pub(crate) const HEADER: usize = 150;
    pub(crate) const SECTION: usize = 3_000;
    pub(crate) const CONTEXT: usize = 300;
    pub(crate) const LINK: usize = 3_000;
    pub(crate) const FALLBACK: usize = 2_000;
}

/// Discord: <https://docs.discord.com/developers/resources/message#embed-object-embed-limits>.
pub(super) mod discord {
    pub(crate) const TITLE: usize = 256;
    pub(crate) const DESCRIPTION: usize = 4_096;
    pub(crate) const AUTHOR: usize = 256;
    pub(crate) const FOOTER: usize = 2_048;
    pub(crate) const TOTAL: usize = 6_000;
}

/// Teams: a message has at most 28 KB
/// (<https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using>). Users
/// report 413 from half of it on for UTF-8, so each character counts as the longer of its JSON in UTF-8 and in UTF-16.
pub(super) mod teams {
    pub(crate) const HEADING: usize = 1_200;
    pub(crate) const TEXT: usize = 20_000;
    pub(crate) const ORIGIN: usize = 1_200;
}

/// The smallest messages. Discord: `content` has at most 2,000 characters
/// (<https://docs.discord.com/developers/resources/webhook#execute-webhook>), the name of a thread 100
/// (<https://docs.discord.com/developers/resources/channel#start-thread-in-forum-or-media-channel>).
pub(super) mod plain {
    pub(crate) const HEADING: usize = 150;
    pub(crate) const DISCORD_CONTENT: usize = 2_000;
    pub(crate) const DISCORD_THREAD: usize = 100;
}

/// E-mail: what people read in one. A subject is folded at 78 characters.
pub(super) mod email {
    pub(crate) const SUBJECT: usize = 150;
    pub(crate) const HEADING: usize = 300;
    pub(crate) const ORIGIN: usize = 300;
    pub(crate) const TEXT: usize = 4_000;
    /// Text of each post in a digest.
    pub(crate) const DIGEST_TEXT: usize = 300;
    pub(crate) const TERMS: usize = 10;
    pub(crate) const TERM: usize = 60;
}

/// Addresses that are longer are not addresses of posts, and some services refuse a whole message because of one.
pub(super) const URL: usize = 2_000;
