//! Extraction over invented pages, friendly and hostile.

use std::time::{Duration, Instant};

use url::Url;

use super::{LinkKind, PageText, extract, html};

const PAGE: &str = r#"<!doctype html><html lang="en-GB"><head><meta charset="utf-8">
<title>Brewforge | Lever espresso machines</title>
<meta name="description" content="Hand-built lever espresso machines for home baristas.">
<meta property="og:site_name" content="Brewforge">
<link rel="alternate" type="application/rss+xml" href="/feed.xml" title="News">
<script>var evil = "<p>script text</p>";</script><style>p{}</style>
<script type="application/ld+json">{"@type":"Organization","name":"Brewforge Ltd"}</script></head>
<body class="no-sidebar"><header><nav><a href="/login">Sign in</a></nav><h1>Espresso, by hand</h1></header>
<div class="cookie-bar">We use cookies.<button>Accept all</button></div>
<main><p>Our dual boiler and lever machines pull <b>cafe</b>-grade shots.<p>Second paragraph
<ul><li>Burr grinders<li>Portafilters</ul>
<div id="siteTestimonials"><p>Great service, says Jane.</p></div>
<svg><title>icon</title></svg><img src=x><p hidden>secret</p>
<h2>What customers say</h2><p>Superb, wrote John.</p><h2>Compare</h2>
<a href="/compare/x">Brewforge vs Cremona</a></main>
<footer>&copy; 2026 Brewforge. <a href="https://twitter.com/brewforge">Twitter</a></footer></body></html>"#;

fn text(page: &PageText) -> String {
    page.blocks
        .iter()
        .map(|block| format!("{}\n", block.text))
        .collect()
}

fn read(body: &str) -> PageText {
    let url = Url::parse("https://brewforge.example/about/").unwrap();
    extract(&url, Some("text/html"), body.as_bytes()).unwrap()
}

#[test]
fn the_text_about_the_subject_is_kept_and_the_rest_is_not() {
    let page = read(PAGE);
    assert_eq!(page.title, "Brewforge | Lever espresso machines");
    assert_eq!(page.site_name, "Brewforge");
    assert_eq!(page.structured_names, ["Brewforge Ltd"]);
    assert_eq!(page.lang, "en");
    let headings: Vec<_> = page.headings.iter().map(|h| h.text.as_str()).collect();
    assert_eq!(headings, ["Espresso, by hand", "Compare"]);
    assert_eq!(
        text(&page),
        "Our dual boiler and lever machines pull cafe-grade shots.\nSecond paragraph\n\
         Burr grinders\nPortafilters\nBrewforge vs Cremona\n"
    );
}

#[test]
fn links_are_absolute_and_know_their_place() {
    let page = read(PAGE);
    let find = |href: &str| page.links.iter().find(|l| l.href == href).map(|l| l.kind);
    assert_eq!(
        find("https://brewforge.example/feed.xml"),
        Some(LinkKind::Feed)
    );
    let main = Some(LinkKind::Anchor { in_main: true });
    assert_eq!(find("https://brewforge.example/compare/x"), main);
    let footer = Some(LinkKind::Anchor { in_main: false });
    assert_eq!(find("https://twitter.com/brewforge"), footer);
}

#[test]
fn a_page_that_is_all_boilerplate_by_its_classes_is_read_anyway() {
    let page =
        read(r#"<div class="sidebar-layout"><p>Trail running shoes, resoled by hand.</p></div>"#);
    assert_eq!(text(&page), "Trail running shoes, resoled by hand.\n");
}

#[test]
fn hostile_nesting_and_attributes_neither_overflow_nor_hang() {
    let started = Instant::now();
    let url = Url::parse("https://example.com/").unwrap();
    // However little text there is.
    let read = |body: &str| html::extract(&url, body);
    let deep = format!(
        "{}text{}",
        "<div>".repeat(100_000),
        "</div>".repeat(100_000)
    );
    assert_eq!(text(&read(&deep)), "text\n");
    read(&"<b><i><p>".repeat(100_000));
    read(&format!(
        "<a {}>",
        (0..400_000).map(|i| format!("a{i} ")).collect::<String>()
    ));
    read(&"</div>".repeat(300_000));
    read(&"<".repeat(2_000_000));
    read(&"&".repeat(2_000_000));
    read(&"<svg>".repeat(300_000));
    read(&format!("<!--{}", "-".repeat(2_000_000)));
    read(&"<a href=x>y".repeat(200_000));
    // Generous: an unoptimised build on a busy machine.
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn other_forms_are_read_or_refused() {
    let url = Url::parse("https://example.com/").unwrap();
    let markdown = extract(
        &url,
        Some("text/markdown"),
        b"# Cargo bikes\n\nBuilt in Leith.\n```\ncode\n```",
    );
    let markdown = markdown.unwrap();
    assert_eq!(
        (markdown.title.as_str(), text(&markdown).as_str()),
        ("Cargo bikes", "Built in Leith.\n")
    );
    let rss = br#"<?xml version="1.0"?><rss version="2.0"><channel><title>Bike news</title>
        <link>https://example.com</link><description>All of it</description>
        <item><title>New cargo bike</title><guid>1</guid></item></channel></rss>"#;
    let feed = extract(&url, Some("application/rss+xml"), rss).unwrap();
    assert!(feed.is_feed);
    assert_eq!(
        (feed.title.as_str(), text(&feed).as_str()),
        ("Bike news", "New cargo bike\n")
    );
}

#[test]
fn what_cannot_be_read_says_what_it_is() {
    let url = Url::parse("https://example.com/").unwrap();
    for (content_type, body, reason) in [
        (
            "application/pdf",
            &b"%PDF-1.7 and so on"[..],
            "not a page of text (application/pdf)",
        ),
        (
            "image/png",
            b"\x89PNG\r\n",
            "not a page of text (image/png)",
        ),
        (
            "text/html",
            &[0; 500],
            "not a page of text (binary content)",
        ),
        (
            "application/json",
            b"{\"a\": \"some other thing\"}",
            "neither a page nor a feed (application/json)",
        ),
        ("text/html", b"", "a page without text"),
        ("text/html", b"<p>Hello", "a page with too little text"),
    ] {
        let said = extract(&url, Some(content_type), body).unwrap_err();
        assert_eq!(said.to_string(), reason);
    }
}

#[test]
fn a_nul_in_a_page_is_passed_over() {
    let page = read("<title>Bikes\0 of Leith</title><p>Cargo bi\0kes, built by hand.");
    assert_eq!(page.title, "Bikes of Leith");
    assert_eq!(text(&page), "Cargo bikes, built by hand.\n");
}

#[test]
fn utf_16_is_read_where_the_head_says_so() {
    let url = Url::parse("https://example.com/").unwrap();
    let body: Vec<u8> = "<p>Cargo bikes, built by hand."
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let page = extract(&url, Some("text/html; charset=utf-16le"), &body).unwrap();
    assert_eq!(text(&page), "Cargo bikes, built by hand.\n");
}

/// Damaged pages of every kind: no panic, whatever the bytes.
#[test]
fn damaged_pages_are_read_as_far_as_they_go() {
    let url = Url::parse("https://example.com/").unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 1_000_003).unwrap() % bound
    };
    for round in 0..500 {
        let mut body = PAGE.as_bytes().to_vec();
        for _ in 0..1 + round % 40 {
            let at = random(body.len());
            match random(3) {
                0 => body[at] = u8::try_from(1 + random(255)).unwrap(),
                1 => body.truncate(at.max(1)),
                _ => {
                    let from = random(body.len());
                    let piece = body[from..(from + 40).min(body.len())].to_vec();
                    body.splice(at..at, piece);
                }
            }
        }
        for content_type in [
            None,
            Some("text/html"),
            Some("application/xml"),
            Some("text/plain"),
        ] {
            let _ = extract(&url, content_type, &body);
        }
    }
}
