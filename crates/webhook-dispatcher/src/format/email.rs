//! E-mail: a subject, and the same content as text and as HTML.
//!
//! A post is untrusted text. The subject is one line, the HTML has no markup but ours, and only web addresses become
//! links.

use std::fmt::Write as _;

use domain::{Match, Post, ServiceEvent};

use super::{
    heading,
    limits::email as limits,
    origin,
    text::{self, plain},
};

/// Numbers of characters of a title and of a text that are worth reading: more than are shown, because some are invisible.
pub(crate) const READ: i32 = 5_000;
/// The same for a Scan in a digest. A full digest is about as large as the largest post.
pub(crate) const READ_IN_DIGEST: i32 = 400;
/// Signals from this strength on are a reason.
const STRONG: f64 = 0.5;

/// Content of a mail.
pub(crate) struct Letter {
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
}

/// A post with the reasons why it matched.
pub(crate) struct Entry<'a> {
    pub(crate) post: &'a Post,
    /// `None` if the Scan is gone.
    pub(crate) matched: Option<&'a Match>,
    /// Page of the Scan in the console.
    pub(crate) page: String,
    /// The same page, where it is about to be muted.
    pub(crate) mute: String,
}

enum Block {
    Heading(String),
    Paragraph(String),
    List(Vec<String>),
    Link { label: &'static str, url: String },
}

/// The mail of one Scan.
pub(crate) fn of_scan(entry: &Entry<'_>, unsubscribe: &str) -> Letter {
    let mut blocks = Vec::new();
    add(&mut blocks, entry, limits::TEXT);
    blocks.push(link("Unsubscribe", unsubscribe));
    letter(&heading(entry.post), &blocks)
}

/// The mail of a service event.
pub(crate) fn of_event(event: &ServiceEvent, unsubscribe: &str) -> Letter {
    let (title, details) = event.summary();
    let time = event.time.to_chrono().format("%Y-%m-%d %H:%M UTC");
    let mut blocks = vec![
        Block::Heading(plain(&title, limits::HEADING)),
        Block::Paragraph(time.to_string()),
    ];
    if let Some(details) = details {
        blocks.push(Block::Paragraph(plain(&details, limits::TEXT)));
    }
    blocks.push(link("Unsubscribe", unsubscribe));
    letter(&title, &blocks)
}

/// The mail of the Scans of an hour or a day. It lists `entries`, the newest of `total` Scans; `inbox` has all.
pub(crate) fn of_digest(
    entries: &[Entry<'_>],
    total: i64,
    inbox: &str,
    unsubscribe: &str,
) -> Letter {
    let subject = match total {
        1 => "1 new post".to_owned(),
        _ => format!("{total} new posts"),
    };
    let mut blocks = vec![Block::Paragraph(format!("{subject} matched."))];
    for entry in entries {
        add(&mut blocks, entry, limits::DIGEST_TEXT);
    }
    let listed = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    if total > listed {
        let rest = total - listed;
        blocks.push(Block::Paragraph(format!(
            "{rest} older ones are not listed."
        )));
    }
    blocks.push(link("Open all in Earshot", inbox));
    blocks.push(link("Unsubscribe", unsubscribe));
    letter(&subject, &blocks)
}

/// The mail that asks a recipient to confirm the address. Nothing in it is from a customer: otherwise it could be used
/// to write to strangers.
pub(crate) fn of_request(site: &str, confirm: &str, unsubscribe: &str) -> Letter {
    let blocks = [
        Block::Heading("Confirm your address".to_owned()),
        Block::Paragraph(format!(
            "A user of Earshot at {site} entered this address, to send you posts from the web that match a search."
        )),
        link("Confirm, and get these mails", confirm),
        Block::Paragraph(
            "If you do not know about this, do nothing: without your confirmation you get none of them.".to_owned(),
        ),
        link("Refuse them", unsubscribe),
    ];
    letter("Confirm that Earshot may write to you", &blocks)
}

fn link(label: &'static str, url: &str) -> Block {
    Block::Link {
        label,
        url: url.to_owned(),
    }
}

fn add(blocks: &mut Vec<Block>, entry: &Entry<'_>, max_text: usize) {
    let post = entry.post;
    let title = text::or_dash(plain(&heading(post), limits::HEADING));
    blocks.push(Block::Heading(title));
    blocks.push(Block::Paragraph(plain(&origin(post), limits::ORIGIN)));
    if let Some(body) = post.text.as_deref().filter(|body| !text::is_blank(body)) {
        blocks.push(Block::Paragraph(plain(body, max_text)));
    }
    if let Some(matched) = entry.matched {
        blocks.push(Block::Paragraph("Why it matched:".to_owned()));
        blocks.push(Block::List(reasons(matched)));
    }
    if let Some(url) = text::link(&post.url) {
        blocks.push(Block::Link {
            label: "Open the post",
            url,
        });
    }
    blocks.push(link("Open in Earshot", &entry.page));
    blocks.push(link("Mute posts like this", &entry.mute));
}

fn reasons(matched: &Match) -> Vec<String> {
    let mut reasons = Vec::new();
    let terms = matched.terms.iter().take(limits::TERMS);
    let terms: Vec<String> = terms.map(|term| plain(term, limits::TERM)).collect();
    if !terms.is_empty() {
        reasons.push(format!("It mentions {}.", terms.join(", ")));
    }
    let score = matched.score;
    reasons.push(match matched.focus {
        Some(focus) => format!("Its score for the focus {} is {score:.2}.", focus.as_str()),
        None => format!("Its score is {score:.2}."),
    });
    if let Some(signals) = matched.signals {
        for (strength, reason) in [
            (signals.buying, "Someone wants to choose, buy or hire."),
            (signals.comparison, "Products or services are compared."),
            (signals.trouble, "Someone complains or needs help."),
        ] {
            if strength >= STRONG {
                reasons.push(reason.to_owned());
            }
        }
    }
    if matched.judged {
        reasons.push("The LLM filter accepted it.".to_owned());
    }
    reasons
}

fn letter(subject: &str, blocks: &[Block]) -> Letter {
    let (mut text, mut html) = (String::new(), String::new());
    html.push_str("<!doctype html>\n<html><body>\n");
    for block in blocks {
        // Writing to a String never fails.
        let _ = match block {
            Block::Heading(words) => {
                let _ = write!(text, "{words}\n\n");
                writeln!(html, "<h2>{}</h2>", escaped(words))
            }
            Block::Paragraph(words) => {
                let _ = write!(text, "{words}\n\n");
                writeln!(html, "<p>{}</p>", escaped(words).replace('\n', "<br>\n"))
            }
            Block::List(items) => {
                for item in items {
                    let _ = writeln!(text, "- {item}");
                }
                text.push('\n');
                let items = items
                    .iter()
                    .map(|item| format!("<li>{}</li>", escaped(item)));
                writeln!(html, "<ul>{}</ul>", items.collect::<String>())
            }
            Block::Link { label, url } => {
                let _ = write!(text, "{label}:\n{url}\n\n");
                writeln!(
                    html,
                    "<p><a href=\"{}\">{}</a></p>",
                    escaped(url),
                    escaped(label)
                )
            }
        };
    }
    html.push_str("</body></html>\n");
    let subject = plain(subject, limits::SUBJECT).replace('\n', " ");
    Letter {
        subject: text::or_dash(subject),
        text,
        html,
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use domain::{Focus, Match, scan::Signals};

    use super::{Entry, of_digest, of_event, of_request, of_scan};

    fn matched() -> Match {
        Match {
            score: 0.874,
            terms: vec!["kettle".to_owned(), "<b>tea</b>".to_owned()],
            focus: Some(Focus::Sales),
            spans: Vec::new(),
            signals: Some(Signals {
                buying: 0.9,
                comparison: 0.1,
                trouble: 0.0,
            }),
            judged: false,
            reader: None,
        }
    }

    #[test]
    fn mail_has_the_post_its_reasons_and_its_links() {
        let post = test_support::post("hackernews:1", "Which kettle?");
        let matched = matched();
        let entry = Entry {
            post: &post,
            matched: Some(&matched),
            page: "https://earshot.example/console/#/n/1/inbox?scan=2.3".to_owned(),
            mute: "https://earshot.example/console/#/n/1/inbox?scan=2.3&mute=1".to_owned(),
        };
        let letter = of_scan(&entry, "https://earshot.example/mail/unsubscribe/ab");
        assert_eq!(letter.subject, "Which kettle?");
        for part in [
            "Which kettle?",
            "It mentions kettle, <b>tea</b>.",
            "Its score for the focus SALES is 0.87.",
            "Someone wants to choose, buy or hire.",
            "inbox?scan=2.3&mute=1",
            "https://earshot.example/mail/unsubscribe/ab",
        ] {
            assert!(letter.text.contains(part), "{part}: {}", letter.text);
        }
        assert!(!letter.text.contains("compared"));
        assert!(letter.html.contains("&lt;b&gt;tea&lt;/b&gt;"));
        assert!(letter.html.contains("inbox?scan=2.3&amp;mute=1"));
    }

    #[test]
    fn digest_lists_some_posts_and_counts_all() {
        let post = test_support::post("hackernews:1", "Which kettle?");
        let entry = || Entry {
            post: &post,
            matched: None,
            page: "https://earshot.example/a".to_owned(),
            mute: "https://earshot.example/b".to_owned(),
        };
        let letter = of_digest(
            &[entry(), entry()],
            30,
            "https://earshot.example/i",
            "https://u.example",
        );
        assert_eq!(letter.subject, "30 new posts");
        assert_eq!(letter.text.matches("Which kettle?").count(), 2);
        assert!(letter.text.contains("28 older ones are not listed."));
        assert!(letter.text.contains("https://earshot.example/i"));
        let letter = of_digest(
            &[entry()],
            1,
            "https://earshot.example/i",
            "https://u.example",
        );
        assert_eq!(letter.subject, "1 new post");
        assert!(!letter.text.contains("not listed"));
    }

    #[test]
    fn hostile_post_adds_neither_markup_nor_headers() {
        let mut post =
            test_support::post("hackernews:1", "a\r\nBcc: eve@example.com\r\n\r\n<script>");
        post.text = Some("</p><img src=x onerror=\"a('b')\">".to_owned());
        post.url = "javascript:alert(1)".to_owned();
        post.user.name = "<i>\u{202e}eve".to_owned();
        let entry = Entry {
            post: &post,
            matched: None,
            page: "https://earshot.example/a".to_owned(),
            mute: "https://earshot.example/b".to_owned(),
        };
        let letter = of_scan(&entry, "https://earshot.example/c");
        assert!(!letter.subject.contains(['\r', '\n']), "{}", letter.subject);
        for markup in ["<script", "<img", "<i>", "javascript:", "\u{202e}"] {
            assert!(!letter.html.contains(markup), "{markup}: {}", letter.html);
        }
        assert!(!letter.text.contains("javascript:"));
    }

    #[test]
    fn mail_of_a_service_event_says_what_happened_and_adds_no_markup() {
        let event = serde_json::from_value(serde_json::json!({
            "type": "CONNECTION_DISABLED",
            "id": "01jd3yc5r6s7t8v9w0x1y2z3a4",
            "time": "2026-11-21T01:02:03.000123Z",
            "name": "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d/connections/01jd3yax4c5d6e7f8g9h0j1k2m",
            "nickname": "<b>ours</b>\r\nBcc: eve@example.com",
            "reason": "the endpoint answered 410",
        }));
        let letter = of_event(&event.unwrap(), "https://earshot.example/c");
        assert!(!letter.subject.contains(['\r', '\n']), "{}", letter.subject);
        for part in ["is disabled", "2026-11-21 01:02 UTC", "answered 410"] {
            assert!(letter.text.contains(part), "{part}: {}", letter.text);
        }
        assert!(!letter.html.contains("<b>"), "{}", letter.html);
    }

    #[test]
    fn request_to_confirm_names_the_site_alone() {
        let letter = of_request(
            "earshot.example",
            "https://a.example/1",
            "https://a.example/2",
        );
        assert!(letter.text.contains("Earshot at earshot.example"));
        assert!(letter.text.contains("https://a.example/1"));
        assert!(letter.html.contains("href=\"https://a.example/2\""));
    }
}
