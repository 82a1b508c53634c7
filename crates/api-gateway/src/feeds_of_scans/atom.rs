//! Atom (RFC 4287). All text is plain (`type="text"`), so that a feed reader does not interpret markup in it.

use std::io;

use quick_xml::{
    Writer,
    events::{BytesDecl, BytesText, Event},
};

use super::feed::{Feed, link, text, title};

pub(super) fn write(feed: &Feed) -> io::Result<Vec<u8>> {
    let mut xml = Writer::new(Vec::new());
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    xml.create_element("feed")
        .with_attribute(("xmlns", "http://www.w3.org/2005/Atom"))
        .write_inner_content(|xml| {
            element(xml, "id", &format!("urn:earshot:{}", feed.manager))?;
            element(xml, "title", &feed.title)?;
            element(xml, "updated", &feed.updated.to_string())?;
            element(xml, "generator", "Earshot")?;
            for scan in &feed.scans {
                xml.create_element("entry").write_inner_content(|xml| {
                    element(xml, "id", &format!("urn:earshot:{}", scan.name))?;
                    element(xml, "title", &title(scan))?;
                    element(xml, "published", &scan.create_time.to_string())?;
                    element(xml, "updated", &scan.update_time.to_string())?;
                    if let Some(url) = link(&scan.post.url) {
                        let url = legal(url);
                        xml.create_element("link")
                            .with_attribute(("rel", "alternate"))
                            .with_attribute(("href", url.as_str()))
                            .write_empty()?;
                    }
                    xml.create_element("author").write_inner_content(|xml| {
                        element(xml, "name", &scan.post.user.name)?;
                        match link(&scan.post.user.url) {
                            Some(url) => element(xml, "uri", url),
                            None => Ok(()),
                        }
                    })?;
                    for label in &scan.labels {
                        let label = legal(label);
                        xml.create_element("category")
                            .with_attribute(("term", label.as_str()))
                            .write_empty()?;
                    }
                    element(xml, "content", &text(scan))
                })?;
            }
            Ok(())
        })?;
    Ok(xml.into_inner())
}

fn element(xml: &mut Writer<Vec<u8>>, name: &str, text: &str) -> io::Result<()> {
    let text = legal(text);
    xml.create_element(name)
        .write_text_content(BytesText::new(&text))?;
    Ok(())
}

/// Removes characters that XML 1.0 cannot contain, escaped or not.
fn legal(text: &str) -> String {
    text.chars()
        .filter(|c| {
            matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        })
        .collect()
}
