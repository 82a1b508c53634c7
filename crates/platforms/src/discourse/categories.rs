//! Categories by number: read once and cached for an hour, in this process.
//!
//! An unknown number triggers a new read, at most once in ten minutes. If a site does not show its categories,
//! the number serves as the name, because a topic must have a category.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use domain::Subforum;
use outbound::large;
use serde::Deserialize;
use tokio::sync::Mutex;

use super::Discourse;
use crate::null;
use crate::{Community, PollError, text};

const KEEP: Duration = Duration::from_hours(1);
const READ_AGAIN: Duration = Duration::from_mins(10);
/// Maximum number of cached categories.
const MAX_CATEGORIES: usize = 5_000;

#[derive(Default)]
pub(super) struct Cache {
    read: Mutex<Option<Read>>,
}

struct Read {
    at: Instant,
    by_id: HashMap<i64, Category>,
}

#[derive(Deserialize)]
struct Answer {
    category_list: CategoryList,
}

#[derive(Deserialize)]
struct CategoryList {
    categories: Vec<serde_json::Value>,
}

#[derive(Clone, Deserialize)]
struct Category {
    id: i64,
    #[serde(default, deserialize_with = "null::or_default")]
    name: String,
    #[serde(default, deserialize_with = "null::or_default")]
    slug: String,
    /// Plain text, on newer sites.
    description_text: Option<String>,
    /// HTML.
    description: Option<String>,
    topic_count: Option<u64>,
    #[serde(default)]
    read_restricted: Option<bool>,
    #[serde(default)]
    subcategory_list: Option<Vec<serde_json::Value>>,
}

impl Cache {
    /// The site's name for the category.
    pub(super) async fn subforum(
        &self,
        site: &Discourse,
        id: Option<i64>,
    ) -> Result<Subforum, PollError> {
        let Some(id) = id else {
            return Ok(unnamed(site, 0));
        };
        let mut read = self.read.lock().await;
        let fresh = read.as_ref().is_some_and(|read| {
            let age = read.at.elapsed();
            age < READ_AGAIN || (age < KEEP && read.by_id.contains_key(&id))
        });
        if !fresh {
            *read = Some(fetch(site).await?);
        }
        let category = read.as_ref().and_then(|read| read.by_id.get(&id));
        Ok(category.map_or_else(|| unnamed(site, id), |category| named(site, category)))
    }

    /// The categories that contain all the words, those with the most topics first.
    pub(super) async fn search(
        &self,
        site: &Discourse,
        words: &str,
        limit: usize,
    ) -> Result<Vec<Community>, PollError> {
        let mut read = self.read.lock().await;
        if read.as_ref().is_none_or(|read| read.at.elapsed() >= KEEP) {
            *read = Some(fetch(site).await?);
        }
        let words = words.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let mut found: Vec<Community> = read
            .iter()
            .flat_map(|read| read.by_id.values())
            .filter_map(|category| community(site, category))
            .filter(|community| {
                let text = format!("{} {}", community.name, community.about).to_lowercase();
                words.iter().all(|word| text.contains(word))
            })
            .collect();
        found.sort_by(|a, b| b.members.cmp(&a.members).then_with(|| a.what.cmp(&b.what)));
        found.truncate(limit);
        Ok(found)
    }
}

async fn fetch(site: &Discourse) -> Result<Read, PollError> {
    let mut url = site.below("categories.json");
    url.query_pairs_mut()
        .append_pair("include_subcategories", "true");
    let answer = large::without_place(site.get::<Answer>(&url, "categories")).await;
    let mut waiting = match answer {
        Ok(answer) => answer.category_list.categories,
        // This site does not list its categories. Its topics are still worth reading.
        Err(
            error @ (PollError::NotFound(_) | PollError::Refused { .. } | PollError::Malformed(_)),
        ) => {
            tracing::debug!(platform = site.name, %error, "no categories; using their numbers as names");
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let mut by_id = HashMap::new();
    while let Some(value) = waiting.pop() {
        let Ok(mut category) = Category::deserialize(value) else {
            continue;
        };
        waiting.extend(category.subcategory_list.take().unwrap_or_default());
        if by_id.len() < MAX_CATEGORIES {
            by_id.insert(category.id, category);
        }
    }
    Ok(Read {
        at: Instant::now(),
        by_id,
    })
}

fn unnamed(site: &Discourse, id: i64) -> Subforum {
    Subforum {
        id: id.to_string(),
        name: id.to_string(),
        url: site.below("categories").to_string(),
    }
}

fn named(site: &Discourse, category: &Category) -> Subforum {
    let name = text::line(&category.name);
    if name.is_empty() {
        return unnamed(site, category.id);
    }
    Subforum {
        id: category.id.to_string(),
        name,
        url: site.below(&path(category)).to_string(),
    }
}

/// The path as in the site's addresses and in feed names.
fn path(category: &Category) -> String {
    let slug = match category.slug.as_str() {
        "" => "-",
        slug => slug,
    };
    format!("c/{slug}/{}", category.id)
}

fn community(site: &Discourse, category: &Category) -> Option<Community> {
    let what = path(category);
    let about = match (&category.description_text, &category.description) {
        (Some(text), _) => text::block(text),
        (None, Some(html)) => text::block(&text::from_html(html)),
        (None, None) => String::new(),
    };
    let open = category.read_restricted != Some(true) && super::accepts(&what);
    open.then(|| Community {
        url: site.below(&what).to_string(),
        what,
        name: text::line(&category.name),
        about,
        members: category.topic_count,
    })
}
