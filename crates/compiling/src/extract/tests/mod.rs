//! Extraction from invented pages, well-formed and hostile.

mod builders;

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
fn only_text_about_the_subject_is_kept() {
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
fn words_of_adjacent_elements_stay_apart() {
    for (body, expected) in [
        (
            "<p><span>Fast</span><span>Secure</span> backups",
            "Fast Secure backups",
        ),
        (
            "<p><a href=/a>Mail</a><a href=/b>Calendar</a>",
            "Mail Calendar",
        ),
        (
            "<p><a href=/a><span>Mail</span></a><label>Calendar</label>",
            "Mail Calendar",
        ),
        ("<p>Cargo bikes<br>Trailers", "Cargo bikes Trailers"),
        ("<p>Cargo bikes<img src=x>Trailers", "Cargo bikes Trailers"),
        ("<table><tr><td>Mail<td>Calendar</table>", "Mail\nCalendar"),
        (
            "<p><my-chip>Mail</my-chip><my-chip>Tasks</my-chip>",
            "Mail Tasks",
        ),
        // A word that markup splits is still one word.
        (
            "<p><b>E</b>arshot <i>e</i><b>spresso</b> H<sub>2</sub>O",
            "Earshot espresso H2O",
        ),
        (
            "<p>Brew<span>forge</span> makes <span>Cafe</span>tières",
            "Brewforge makes Cafetières",
        ),
        ("<p>Donau<wbr>dampf<b>schiff</b>", "Donaudampfschiff"),
        (
            "<p><span>F</span><span>a</span><span>s</span><span>t</span> backups",
            "Fast backups",
        ),
        ("<p><ruby>会計<rt>かいけい</rt></ruby>ソフト", "会計ソフト"),
    ] {
        let page = read(&format!("<title>A page of many words</title>{body}"));
        assert_eq!(text(&page).trim_end(), expected, "{body}");
    }
    let page = read(
        "<h1><div>Fast backups</div><div>Secure storage</div></h1><p><a href=/x><div>Cargo bikes</div><div>Trailers</div></a>",
    );
    assert_eq!(page.headings[0].text, "Fast backups Secure storage");
    assert_eq!(page.links[0].text, "Cargo bikes Trailers");
}

#[test]
fn links_are_absolute_and_have_their_location() {
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
fn first_base_of_a_page_is_that_of_its_links() {
    let long = "a".repeat(2_048);
    for (bases, link) in [
        ("<base href='/shop/'>", "https://brewforge.example/shop/x"),
        (
            "<base target=_top><base href='/a/'><base href='b/'>",
            "https://brewforge.example/a/x",
        ),
        (
            &format!("<base href='/{long}/'><base href='/b/'>"),
            "https://brewforge.example/about/x",
        ),
    ] {
        let page = read(&format!(
            "<head>{bases}</head><p>Espresso machines by hand. <a href=x>Prices</a></p>"
        ));
        let links: Vec<&str> = page.links.iter().map(|link| link.href.as_str()).collect();
        assert_eq!(links, [link], "{bases}");
    }
}

#[test]
fn page_with_only_boilerplate_classes_is_still_read() {
    let page =
        read(r#"<div class="sidebar-layout"><p>Trail running shoes, resoled by hand.</p></div>"#);
    assert_eq!(text(&page), "Trail running shoes, resoled by hand.\n");
}

#[test]
fn hostile_nesting_and_attributes_neither_overflow_nor_hang() {
    let url = Url::parse("https://example.com/").unwrap();
    // Calls `html::extract` directly, which accepts any amount of text.
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
    let long_base = format!("<base href='{}/'>", "a".repeat(4_000));
    read(&format!(
        "{}{}",
        long_base.repeat(1_000),
        "<a href=x>y".repeat(100_000)
    ));
    // What takes quadratic time does not end within the runner's limit of minutes.
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
fn unreadable_content_is_named() {
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
fn nul_in_a_page_is_skipped() {
    let page = read("<title>Bikes\0 of Leith</title><p>Cargo bi\0kes, built by hand.");
    assert_eq!(page.title, "Bikes of Leith");
    assert_eq!(text(&page), "Cargo bikes, built by hand.\n");
}

#[test]
fn utf_16_is_read_if_declared() {
    let url = Url::parse("https://example.com/").unwrap();
    let body: Vec<u8> = "<p>Cargo bikes, built by hand."
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let page = extract(&url, Some("text/html; charset=utf-16le"), &body).unwrap();
    assert_eq!(text(&page), "Cargo bikes, built by hand.\n");
}

/// Damaged pages of every kind never cause a panic.
#[test]
fn damaged_pages_are_read_as_far_as_possible() {
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

#[test]
fn testimonials_and_staff_are_dropped_and_their_people_noted() {
    let page = read(
        r#"<title>Packrat backups</title><p>Packrat saves the files of small offices.
        <p>“It restored our server in an hour.” — Jane Doe, CTO at Wexler Foods
        <p>"Never lost a file since"<p>Priya Natarajan, office manager
        <p>It just works. — Bob Kowalski, Engineer
        <h2>Who we are</h2><p>We build backups in Leith.
        <h3>Ines Zubiri</h3><p>Co-founder &amp; CEO</p>
        <h3>Backup Software</h3><p>Manager console for all of your servers</p>
        <p>Espresso Machines - Built by hand<p>– Kubernetes Backups"#,
    );
    assert_eq!(
        text(&page),
        "Packrat saves the files of small offices.\nIt just works.\nWe build backups in Leith.\n\
         Manager console for all of your servers\nEspresso Machines - Built by hand\n– Kubernetes Backups\n"
    );
    assert_eq!(
        page.people,
        ["Jane Doe", "Priya Natarajan", "Bob Kowalski", "Ines Zubiri"]
    );
    let headings: Vec<_> = page.headings.iter().map(|h| h.text.as_str()).collect();
    assert_eq!(headings, ["Who we are", "", "Backup Software"]);
}

fn refusal(body: &str) -> Option<String> {
    let url = Url::parse("https://brewforge.example/").unwrap();
    let answer = extract(&url, Some("text/html"), body.as_bytes());
    answer.err().map(|reason| reason.to_string())
}

#[test]
fn a_page_that_only_asks_for_consent_says_so() {
    for body in [
        "<title>Before you continue</title><h1>Before you continue to Brewforge</h1>
         <p>We use cookies and data to deliver our services, and to measure engagement.
         <p>If you choose to accept all, we will also use cookies to develop new services and advertise.",
        "<title>Brewforge</title><h1>We value your privacy</h1><p>We and our 843 partners store cookies on
         your device, and track you for personalised content. Accept or reject.<p>Manage preferences",
        "<title>Bevor Sie fortfahren</title><p>Wir verwenden Cookies, um Dienste bereitzustellen und zu verbessern.",
    ] {
        let reason = refusal(body).unwrap_or_default();
        assert!(reason.contains("consent to cookies"), "{reason}: {body}");
    }
}

#[test]
fn consent_is_dropped_if_the_page_has_other_text() {
    let page = read(
        "<title>Brewforge</title><p>Lever espresso machines, built by hand in Leith for home baristas.
         <p>This site uses cookies to improve your experience.",
    );
    assert!(!text(&page).contains("cookies"), "{}", text(&page));
    // The description is about cookies.
    let page = read(
        "<title>Brewforge</title><meta name=description content='Lever espresso machines, built by hand.'>
         <h1>Cookie preferences</h1><p>We use cookies to improve your experience.",
    );
    assert_eq!((page.headings.len(), page.blocks.len()), (0, 0));
    // Edible cookies.
    let page = read(
        "<title>Crumble</title><p>We bake cookies with butter every morning, and accept orders until noon.",
    );
    assert_eq!(page.blocks.len(), 1);
    // A page about consent.
    let page = read(&format!(
        "<title>Consently | Cookie consent software</title><p>Cookie consent for any browser, with privacy by default.{}",
        "<p>Connect your shop system and show one banner for all of your domains and apps."
            .repeat(3)
    ));
    assert_eq!(page.blocks.len(), 4);
}

#[test]
fn app_shell_is_read_by_its_head_or_named_in_the_error() {
    let shell = |head: &str| {
        format!(
            "<head>{head}</head><noscript>You need to enable JavaScript to run this app.</noscript><div id=root></div>"
        )
    };
    let reason = refusal(&shell("<title>React App of Brewforge</title>")).unwrap_or_default();
    assert!(reason.contains("scripts render"), "{reason}");
    for body in [
        "<title>Brewforge dashboard</title><div id=app>Loading…</div>",
        "<title>Brewforge dashboard</title><p>Please enable JavaScript in your browser to use this site.",
        "<div id=root></div><script>draw()</script>",
    ] {
        let reason = refusal(body).unwrap_or_default();
        assert!(reason.contains("scripts render"), "{reason}: {body}");
    }
    for head in [
        "<title>Brewforge | Lever espresso machines and grinders</title>",
        "<title>Brewforge</title><meta property=og:description content='Lever espresso machines, built by hand.'>",
        r#"<title>Brewforge</title><script type=application/ld+json>{"@type":"Organization","name":"Brewforge",
            "description":"Lever espresso machines, built by hand."}</script>"#,
    ] {
        assert_eq!(refusal(&shell(head)), None, "{head}");
    }
    assert_eq!(
        refusal("<title>A</title><div id=app><p>Trail running shoes, resoled by hand.</div>"),
        None
    );
}

const ABOUT: &str = "<main><h1>Brewmarten, the gooseneck kettle</h1><p>A gooseneck electric kettle for pour-over coffee, \
                     with a temperature to the degree.</p></main>";

#[test]
fn declarative_shadow_roots_are_read() {
    for page in [
        format!(
            "<title>Home</title><product-page><template shadowrootmode=open>{ABOUT}</template></product-page>"
        ),
        format!(
            "<title>Home</title><a-b><template shadowrootmode='closed'><c-d><template shadowrootmode=open>{ABOUT}</template></c-d></template></a-b>"
        ),
        format!("<title>Home</title><a-b><template shadowroot=open>{ABOUT}</template></a-b>"),
        format!(
            "<title>Home</title><a-b><template shadowrootmode=open><style>p {{}}</style>{ABOUT}<slot></slot></template>Light</a-b>"
        ),
    ] {
        let read = read(&page);
        assert!(text(&read).contains("gooseneck electric kettle"), "{page}");
        assert_eq!(read.headings.len(), 1, "{page}");
    }
    // Any other template is inert.
    let read = read(&format!(
        "<p>Trail running shoes, resoled by hand.<template>{ABOUT}</template>"
    ));
    assert!(!text(&read).contains("kettle"));
}

#[test]
fn text_without_scripts_is_read_where_there_is_no_other() {
    let about =
        "A gooseneck electric kettle for pour-over coffee, with a temperature to the degree.";
    for page in [
        format!("<title>Home</title><div id=root></div><noscript><p>{about}</p></noscript>"),
        format!(
            "<title>Home</title><noscript>Please enable JavaScript.</noscript><noscript><div><p>{about}</p></div></noscript>"
        ),
        format!(
            "<title>Home</title><noscript><p>This site needs Javascript.</p><p>{about}</p></noscript>"
        ),
    ] {
        let text = text(&read(&page));
        assert!(
            text.contains(about) && !text.to_lowercase().contains("javascript"),
            "{page}: {text}"
        );
    }
    let long = "Trail running shoes, resoled by hand in our own workshop. ".repeat(20);
    let other = read(&format!("<p>{long}</p><noscript><p>{about}</p></noscript>"));
    assert!(!text(&other).contains("kettle"));
}

#[test]
fn wrapped_json_ld_is_read() {
    let json = r#"{"@type": "Product", "name": "Brewmarten", "description": "A gooseneck electric kettle for pour-over coffee."}"#;
    for script in [
        json.to_owned(),
        format!("[{json}]"),
        format!("<!-- {json} -->"),
        format!("//<![CDATA[\n{json}\n//]]>"),
        format!("/*<![CDATA[*/{json}/*]]>*/"),
        format!("{json};"),
    ] {
        let page = format!(
            "<title>Home of Brewmarten kettles</title><script type='application/ld+json'>{script}</script><p>Welcome to our home."
        );
        assert_eq!(read(&page).structured_products, ["Brewmarten"], "{script}");
    }
}
