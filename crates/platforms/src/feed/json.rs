//! Reads JSON Feed item by item, without building what is not needed.
//!
//! A value of another type than the standard says is read as far as its meaning is clear: a number as an id is text
//! (JSON Feed 1.1, `id`). Anything else is left out.

use std::{collections::BTreeMap, fmt};

use domain::web_url::has_long_host;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use url::Url;

use super::{
    builder::{MAX_AUTHORS, MAX_ENTRIES, is_address},
    date::date,
    document::{Document, Entry, Link, Markup, Person, Rel},
    person::person,
};
use crate::text::repair;

/// The members of feeds, items and authors that are read. All are text.
const TEXTS: [&str; 13] = [
    "id",
    "url",
    "external_url",
    "home_page_url",
    "title",
    "name",
    "description",
    "language",
    "content_html",
    "content_text",
    "summary",
    "date_published",
    "date_modified",
];

/// Reads a document. Of one with an error of syntax, the items before it.
///
/// # Errors
/// When there is no feed.
pub(super) fn build(body: &str, url: &Url) -> serde_json::Result<Document> {
    let (mut feed, mut error) = read(body.as_bytes());
    if error.is_some()
        && let Some(repaired) = repair::json(body.as_bytes())
    {
        (feed, error) = read(&repaired);
    }
    match error {
        Some(error) if feed.items.is_empty() => Err(error),
        error => {
            let mut document = feed.into_document(url);
            document.is_cut = error.is_some();
            Ok(document)
        }
    }
}

fn read(body: &[u8]) -> (Object, Option<serde_json::Error>) {
    let mut feed = Object::default();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut error = Fill(&mut feed, Level::Feed)
        .deserialize(&mut deserializer)
        .err();
    if error.is_none() && !feed.is_feed {
        let reason = "neither `version` nor `items`";
        error = Some(serde::de::Error::custom(reason));
    }
    (feed, error)
}

/// A feed, an item or an author.
#[derive(Default)]
struct Object {
    texts: BTreeMap<&'static str, String>,
    people: Vec<Object>,
    items: Vec<Object>,
    /// Items beyond the most that are read.
    surplus: usize,
    /// True if the document has members that only a feed has.
    is_feed: bool,
    is_object: bool,
}

impl Object {
    fn text(&mut self, name: &str) -> Option<String> {
        let text = self.texts.remove(name)?;
        (!text.trim().is_empty()).then_some(text)
    }

    fn link(&mut self, name: &str, base: &Url) -> Option<Link> {
        let text = self.text(name)?;
        if has_long_host(&text) {
            return None;
        }
        let url = base.join(text.trim()).ok()?;
        is_address(&url).then_some(Link {
            url,
            rel: Rel::Alternate,
        })
    }

    fn people(&mut self) -> Vec<Person> {
        let people = std::mem::take(&mut self.people);
        let named = |mut one: Self| person(&one.text("name")?, one.text("url"));
        people.into_iter().filter_map(named).collect()
    }

    fn into_document(mut self, url: &Url) -> Document {
        let items = std::mem::take(&mut self.items);
        let (items, odd): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.is_object);
        Document {
            title: self.text("title").map(Markup::Plain),
            description: self.text("description").map(Markup::Plain),
            language: self.text("language"),
            links: self.link("home_page_url", url).into_iter().collect(),
            authors: self.people(),
            ttl: None,
            entries: items.into_iter().map(|item| item.into_entry(url)).collect(),
            surplus: self.surplus,
            is_cut: false,
            odd: odd.len(),
        }
    }

    fn into_entry(mut self, base: &Url) -> Entry {
        let links = ["url", "external_url"].map(|name| self.link(name, base));
        let id = self.text("id").map(|id| id.trim().to_owned());
        let whole = { id.as_deref() }.filter(|id| !has_long_host(id));
        let id_link = { whole.and_then(|id| Url::parse(id).ok()) }
            .filter(is_address)
            .map(|url| Link { url, rel: Rel::Id });
        let html = self.text("content_html").map(Markup::Html);
        let plain = self.text("content_text").map(Markup::Plain);
        let (html, plain) = match html {
            None => (plain, None),
            html => (html, plain),
        };
        Entry {
            id,
            title: self.text("title").map(Markup::Plain),
            content: html,
            others: plain.into_iter().collect(),
            summary: self.text("summary").map(Markup::Plain),
            published: self.text("date_published").and_then(|text| date(&text)),
            updated: self.text("date_modified").and_then(|text| date(&text)),
            links: links.into_iter().flatten().chain(id_link).collect(),
            authors: self.people(),
        }
    }
}

/// Fills an object; any other value leaves it as it is.
struct Fill<'a>(&'a mut Object, Level);

/// Place of an object: only feeds have items, and authors have no authors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Feed,
    Item,
    Author,
}

impl<'de> DeserializeSeed<'de> for Fill<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Fill<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(object, level) = self;
        object.is_object = true;
        while let Some(key) = map.next_key::<String>()? {
            if let Some(name) = TEXTS.into_iter().find(|name| **name == key) {
                if let Some(text) = map.next_value::<Text>()?.0 {
                    object.texts.entry(name).or_insert(text);
                }
                continue;
            }
            match key.as_str() {
                "author" | "authors" if level != Level::Author => {
                    let list = List {
                        objects: &mut object.people,
                        most: MAX_AUTHORS,
                        level: Level::Author,
                    };
                    map.next_value_seed(list)?;
                }
                "items" if level == Level::Feed => {
                    object.is_feed = true;
                    let list = List {
                        objects: &mut object.items,
                        most: MAX_ENTRIES,
                        level: Level::Item,
                    };
                    object.surplus += map.next_value_seed(list)?;
                }
                key => {
                    object.is_feed |= key == "version";
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Fills a list of objects from an array or one object, and returns how many did not fit.
struct List<'a> {
    objects: &'a mut Vec<Object>,
    most: usize,
    level: Level,
}

impl List<'_> {
    /// Adds an object if there is room. Returns how many did not fit: one or none.
    fn add(self, object: Object) -> usize {
        if self.objects.len() >= self.most {
            return 1;
        }
        self.objects.push(object);
        0
    }
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<usize, A::Error> {
        while self.objects.len() < self.most {
            let mut object = Object::default();
            if seq
                .next_element_seed(Fill(&mut object, self.level))?
                .is_none()
            {
                return Ok(0);
            }
            self.objects.push(object);
        }
        let mut surplus = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            surplus += 1;
        }
        Ok(surplus)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<usize, A::Error> {
        let mut object = Object::default();
        Fill(&mut object, self.level).visit_map(map)?;
        Ok(self.add(object))
    }

    fn visit_str<E>(self, name: &str) -> Result<usize, E> {
        let mut object = Object::default();
        object.texts.insert("name", name.to_owned());
        Ok(self.add(object))
    }

    fn visit_bool<E>(self, _: bool) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<usize, E> {
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<usize, E> {
        Ok(0)
    }
}

/// Text, or a number as text; any other value is nothing.
struct Text(Option<String>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl TextVisitor {
    fn text<E>(value: &impl ToString) -> Result<Text, E> {
        Ok(Text(Some(value.to_string())))
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Self::text(&text)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
        Self::text(&number)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
        Self::text(&number)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
        Self::text(&number)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Text, A::Error> {
        Fill(&mut Object::default(), Level::Author).visit_seq(seq)?;
        Ok(Text(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }
}
