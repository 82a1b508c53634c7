//! Ids that the platforms give to posts.

use domain::Timestamp;
use sha2::{Digest, Sha256};

use super::{
    names::{BLUESKY, DISCOURSE, FACEBOOK, HACKER_NEWS, LINKEDIN, LOBSTERS, MASTODON, REDDIT, X},
    post::NewPost,
};

/// Bluesky's name for posts.
pub(super) const COLLECTION: &str = "app.bsky.feed.post";
/// X counts the time of its ids from here.
pub(super) const EPOCH_MILLIS: i64 = 1_288_834_974_657;

/// Returns the `Post.id` of a new post with the simulator's number.
pub(super) fn post_id(base_url: &str, new: &NewPost, id: u64, time: Timestamp) -> String {
    match new.platform.as_str() {
        HACKER_NEWS => format!("{HACKER_NEWS}:{id}"),
        LOBSTERS => format!("{LOBSTERS}:{id}"),
        LINKEDIN => format!("urn:li:share:{id}"),
        FACEBOOK => {
            let page = new.community.as_deref().unwrap_or_default();
            format!("{FACEBOOK}:{page}_{id}")
        }
        DISCOURSE if new.parent.is_some() => format!("{DISCOURSE}:p/{id}"),
        DISCOURSE => format!("{DISCOURSE}:t/{id}"),
        REDDIT => format!("{REDDIT}:{}", fullname(id, new.parent.is_some())),
        BLUESKY => bluesky_uri(&new.author, id),
        MASTODON => {
            let native_id = mastodon_id(time, id);
            mastodon_uri(base_url, new.community.as_deref(), &new.author, native_id)
        }
        X => x_url(x_id(time, id)),
        _ if new.parent.is_some() => format!("{base_url}/lemmy/comment/{id}"),
        _ => format!("{base_url}/lemmy/post/{id}"),
    }
}

pub(super) fn bluesky_uri(author: &str, id: u64) -> String {
    format!("at://{}/{COLLECTION}/{}", did(author), rkey(id))
}

pub(super) fn did(author: &str) -> String {
    let hash = Sha256::digest(author.as_bytes());
    let letters = hash.iter().take(24).map(|byte| letter(u64::from(*byte)));
    format!("did:plc:{}", letters.collect::<String>())
}

/// Thirteen letters that sort in the order of the numbers.
pub(super) fn rkey(id: u64) -> String {
    (0..13)
        .rev()
        .map(|place| letter(id >> (5 * place).min(63)))
        .collect()
}

fn letter(number: u64) -> char {
    const LETTERS: &[u8; 32] = b"234567abcdefghijklmnopqrstuvwxyz";
    char::from(LETTERS[usize::try_from(number & 31).unwrap_or_default()])
}

/// The status' id on this instance: its time in the upper bits.
pub(super) fn mastodon_id(time: Timestamp, id: u64) -> u64 {
    let millis = u64::try_from(time.micros().div_euclid(1_000)).unwrap_or_default();
    (millis << 16) | (id & 0xffff)
}

pub(super) fn mastodon_uri(
    base_url: &str,
    community: Option<&str>,
    author: &str,
    native_id: u64,
) -> String {
    match community {
        Some(host) => format!("https://{host}/users/{author}/statuses/{native_id}"),
        None => format!("{base_url}/mastodon/users/{author}/statuses/{native_id}"),
    }
}

/// The fullname of a post or comment.
pub(super) fn fullname(id: u64, is_comment: bool) -> String {
    let kind = if is_comment { "t1" } else { "t3" };
    format!("{kind}_{}", base36(id))
}

pub(super) fn base36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut out = Vec::new();
    while number > 0 || out.is_empty() {
        out.push(char::from(
            DIGITS[usize::try_from(number % 36).unwrap_or(0)],
        ));
        number /= 36;
    }
    out.iter().rev().collect()
}

pub(super) fn x_id(time: Timestamp, id: u64) -> u64 {
    let millis = time.micros().div_euclid(1_000) - EPOCH_MILLIS;
    (u64::try_from(millis).unwrap_or_default() << 22) | (id & 0x3f_ffff)
}

pub(super) fn x_url(native_id: u64) -> String {
    format!("https://x.com/i/status/{native_id}")
}
