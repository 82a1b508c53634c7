//! One post of X's API, version 2.

use domain::{Post, PostType, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;

use crate::null;
use crate::{reading::Made, text};

const SITE: &str = "https://x.com";
/// Epoch of the times in ids, in milliseconds.
const EPOCH_MILLIS: i64 = 1_288_834_974_657;

#[derive(Debug, Deserialize)]
pub(super) struct Tweet {
    pub(super) id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    text: String,
    note_tweet: Option<Note>,
    pub(super) author_id: Option<String>,
    created_at: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    edit_history_tweet_ids: Vec<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    referenced_tweets: Vec<Reference>,
}

#[derive(Debug, Deserialize)]
struct Note {
    #[serde(default, deserialize_with = "null::or_default")]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Reference {
    r#type: String,
}

impl Tweet {
    pub(super) fn read(value: &Value) -> serde_json::Result<Self> {
        let tweet = Self::deserialize(value)?;
        if number(&tweet.id).is_some() {
            Ok(tweet)
        } else {
            Err(serde::de::Error::custom("the id is no number"))
        }
    }

    /// The first id of the post, which an edit does not change.
    pub(super) fn first_id(&self) -> &str {
        let ids = self.edit_history_tweet_ids.iter().chain([&self.id]);
        let ids = ids.filter(|id| number(id).is_some());
        ids.min_by_key(|id| number(id)).unwrap_or(&self.id)
    }

    /// Time of the first version.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let told = (self.first_id() == self.id).then(|| self.created_at.as_deref()?.parse().ok());
        told.flatten()
            .or_else(|| number(self.first_id()).and_then(time_of))
    }

    pub(super) fn is_repost(&self) -> bool {
        self.referenced_tweets
            .iter()
            .any(|one| one.r#type == "retweeted")
    }

    /// `user_name` is the author's, if known.
    pub(super) fn post(&self, time: Timestamp, user_name: Option<&str>) -> Made {
        let long = self.note_tweet.as_ref().map(|note| note.text.as_str());
        let whole = long.filter(|text| !text.is_empty()).unwrap_or(&self.text);
        if whole.is_empty() {
            return Err("no text");
        }
        let Some(text) = text::some_block(&unescape(whole)) else {
            return Ok(None);
        };
        let author = self.author_id.as_deref().filter(|id| number(id).is_some());
        let author = author.unwrap_or("0");
        let url = match user_name {
            Some(name) => format!("{SITE}/{name}/status/{}", self.id),
            None => format!("{SITE}/i/status/{}", self.id),
        };
        Ok(Some(Post {
            post_type: PostType::MicroblogTweet,
            time,
            id: post_id(self.first_id()),
            title: None,
            text: Some(text),
            url,
            subforum: None,
            user: User {
                id: author.to_owned(),
                name: user_name.unwrap_or(author).to_owned(),
                url: match user_name {
                    Some(name) => format!("{SITE}/{name}"),
                    None => format!("{SITE}/i/user/{author}"),
                },
            },
        }))
    }
}

/// The same id for every platform of this kind: there is only one X.
pub(super) fn post_id(native_id: &str) -> String {
    format!("{SITE}/i/status/{native_id}")
}

pub(super) fn native_id(post_id: &str) -> Option<&str> {
    let id = post_id.strip_prefix(SITE)?.strip_prefix("/i/status/")?;
    number(id).map(|_| id)
}

pub(super) fn number(id: &str) -> Option<u64> {
    let digits = (1..=19).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| id.parse().ok()).flatten()
}

/// The time in an id; `None` for old ids, which contain no time.
pub(super) fn time_of(id: u64) -> Option<Timestamp> {
    let millis = i64::try_from(id >> 22).ok()?;
    let told = Timestamp::from_micros((millis + EPOCH_MILLIS).checked_mul(1_000)?);
    told.filter(|_| millis > 0)
}

/// The smallest id of a post at `time`.
pub(super) fn id_at(time: Timestamp) -> u64 {
    let millis = time.micros().div_euclid(1_000) - EPOCH_MILLIS;
    u64::try_from(millis).unwrap_or_default() << 22
}

/// X escapes three characters, and nothing else.
fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_post_is_complete_and_an_edit_keeps_the_first_id() {
        let tweet = Tweet::read(&json!({
            "id": "1578578218171359232", "text": "a &amp;lt; b…", "author_id": "7",
            "note_tweet": {"text": "a &amp;lt; b &lt;c&gt;"}, "created_at": "2022-10-08T02:49:10.000Z",
            "edit_history_tweet_ids": ["1578578200000000000", "1578578218171359232"],
        }));
        let tweet = tweet.unwrap();
        assert_eq!(tweet.first_id(), "1578578200000000000");
        let time = tweet.time().unwrap();
        assert_eq!(time.to_string(), "2022-10-08T02:49:06.101000Z");
        let post = tweet.post(time, Some("ana")).unwrap().unwrap();
        assert_eq!(post.text.as_deref(), Some("a &lt; b <c>"));
        assert_eq!(post.id, "https://x.com/i/status/1578578200000000000");
        assert_eq!(post.url, "https://x.com/ana/status/1578578218171359232");
        assert_eq!(native_id(&post.id), Some("1578578200000000000"));
    }

    #[test]
    fn ids_and_times_convert_into_each_other() {
        let time: Timestamp = "2026-07-04T14:38:06.240Z".parse().unwrap();
        assert_eq!(time_of(id_at(time)), Some(time));
        assert_eq!(time_of(20), None);
        assert_eq!(number("-1"), None);
        assert_eq!(number("99999999999999999999"), None);
    }
}
