//! Seed URLs that are not HTML: plain text, Markdown and feeds.

use url::Url;

use super::{Blocks, Heading, MAX_HEADINGS, MAX_LINE_BYTES, PageText, html, tidy};

/// Maximum number of a feed's entries that describe its subject.
const MAX_ENTRIES: usize = 50;

/// Reads plain text and Markdown: the first line is the title, `#` lines are headings.
pub(super) fn plain(text: &str) -> PageText {
    let mut page = PageText::default();
    let mut blocks = Blocks::default();
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.is_empty() {
            add_line(&mut page, &mut blocks, line);
        }
    }
    page.blocks = blocks.blocks;
    page
}

fn add_line(page: &mut PageText, blocks: &mut Blocks, line: &str) {
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
        blocks.push(text, page.headings.len().checked_sub(1));
    }
}

/// Reads RSS, Atom and JSON Feed; returns `None` for other formats.
pub(super) fn feed(url: &Url, content_type: Option<&str>, body: &[u8]) -> Option<PageText> {
    let feed = platforms::feed::parse(body, content_type, url).ok()?;
    let line = |text: &Option<platforms::feed::Markup>| {
        text.as_ref()
            .map(|text| {
                let blocks = html::extract(url, text.source()).blocks;
                let texts: Vec<_> = blocks.into_iter().map(|block| block.text).collect();
                tidy(&texts.join(" "), MAX_LINE_BYTES)
            })
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
    let mut blocks = Blocks::default();
    for entry in feed.entries.iter().take(MAX_ENTRIES) {
        blocks.push(line(&entry.title), None);
        blocks.push(line(&entry.summary), None);
    }
    page.blocks = blocks.blocks;
    Some(page)
}
