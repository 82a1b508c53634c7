//! Seed URLs that are not HTML: plain text, Markdown, and feeds.

use url::Url;

use super::{Heading, MAX_HEADINGS, MAX_LINE_BYTES, MAX_TEXT_BYTES, PageText, html, tidy};

/// How many entries of a feed tell what it is about.
const MAX_ENTRIES: usize = 50;

/// Plain text and Markdown: the first line is the title, `#` lines are headings.
pub(super) fn plain(text: &str) -> PageText {
    let mut page = PageText::default();
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.is_empty() {
            add_line(&mut page, line);
        }
    }
    page
}

fn add_line(page: &mut PageText, line: &str) {
    let hashes = line.bytes().take_while(|&b| b == b'#').count();
    let text = tidy(
        line.trim_matches(['#', '*', '=', '-', '>', ' ']),
        MAX_LINE_BYTES,
    );
    if text.is_empty() {
        return;
    }
    if page.title.is_empty() {
        page.title.clone_from(&text);
    }
    if (1..=3).contains(&hashes) && page.headings.len() < MAX_HEADINGS {
        let level = if hashes == 1 {
            1
        } else if hashes == 2 {
            2
        } else {
            3
        };
        page.headings.push(Heading { level, text });
    } else {
        push_block(page, &text);
    }
}

/// RSS, Atom and JSON Feed; `None` when it is none of them.
pub(super) fn feed(url: &Url, body: &[u8]) -> Option<PageText> {
    let feed = feed_rs::parser::parse(body).ok()?;
    let line = |text: &Option<feed_rs::model::Text>| {
        text.as_ref()
            .map(|text| tidy(&html::extract(url, &text.content).main_text, MAX_LINE_BYTES))
            .unwrap_or_default()
    };
    let mut page = PageText {
        title: line(&feed.title),
        description: line(&feed.description),
        lang: feed
            .language
            .as_deref()
            .map(html::primary_language)
            .unwrap_or_default(),
        is_feed: true,
        ..PageText::default()
    };
    for entry in feed.entries.iter().take(MAX_ENTRIES) {
        push_block(&mut page, &line(&entry.title));
        push_block(&mut page, &line(&entry.summary));
    }
    Some(page)
}

fn push_block(page: &mut PageText, text: &str) {
    if !text.is_empty() && page.main_text.len() + text.len() < MAX_TEXT_BYTES {
        page.main_text.push_str(text);
        page.main_text.push('\n');
    }
}
