//! JSON Feed 1.1: <https://www.jsonfeed.org/version/1.1/>.

use serde::Serialize;

use super::feed::{Feed, link, text, title};

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    title: &'a str,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    title: String,
    /// Plain text: a feed reader does not interpret markup in it.
    content_text: String,
    date_published: String,
    date_modified: String,
    authors: [Author<'a>; 1],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'a [String],
}

#[derive(Serialize)]
struct Author<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

pub(super) fn write(feed: &Feed) -> Result<Vec<u8>, serde_json::Error> {
    let items = feed.scans.iter().map(|scan| Item {
        id: format!("urn:earshot:{}", scan.name),
        url: link(&scan.post.url),
        title: title(scan),
        content_text: text(scan),
        date_published: scan.create_time.to_string(),
        date_modified: scan.update_time.to_string(),
        authors: [Author {
            name: &scan.post.user.name,
            url: link(&scan.post.user.url),
        }],
        tags: &scan.labels,
    });
    serde_json::to_vec(&Document {
        version: "https://jsonfeed.org/version/1.1",
        title: &feed.title,
        items: items.collect(),
    })
}
