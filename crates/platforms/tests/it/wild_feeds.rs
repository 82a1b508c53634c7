//! Documents as they are found on the web, each with one oddity: what is read of them.

use domain::{Post, Timestamp};
use platforms::{
    Adapter as _, Cursor, Fetched, PollError, PollLimits, Polled, Source, feed::FeedAdapter,
};
use url::Url;

use crate::platform::{always, answering};

async fn poll_with(
    content_type: &str,
    body: &[u8],
    cursor: Option<&Cursor>,
) -> Result<Polled, PollError> {
    let answer = Fetched {
        status: 200,
        headers: vec![("content-type".into(), content_type.into())],
        body: body.to_vec(),
        final_url: Url::parse("https://site.example/blog/feed").unwrap(),
    };
    let feeds = FeedAdapter::new(
        "boards".into(),
        Source::Forum,
        None,
        answering(move |_| answer.clone()),
    );
    feeds
        .poll("https://site.example/feed", cursor, &PollLimits::default())
        .await
}

async fn poll(body: &str) -> Polled {
    let polled = poll_with("application/xml", body.as_bytes(), None).await;
    polled.unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// Title, text and author of each post, sorted.
fn shown(posts: &[Post]) -> Vec<String> {
    let show = |post: &Post| {
        let title = post.title.as_deref().unwrap_or_default();
        let text = post.text.as_deref().unwrap_or_default().replace('\n', "/");
        format!("{title} | {text} | {}", post.user.name)
    };
    let mut shown: Vec<String> = posts.iter().map(show).collect();
    shown.sort_unstable();
    shown
}

async fn reads(document: &str, expected: &[&str]) {
    assert_eq!(shown(&poll(document).await.posts), expected, "{document}");
}

const TWO: [&str; 2] = ["One | First. | Site", "Two | Second. | Site"];

#[tokio::test]
async fn structure_that_no_standard_allows_is_read() {
    let title = "<title>Site</title>";
    let items = "<item><title>One</title><description>First.</description></item>\
                 <item><title>Two</title><description>Second.</description></item>";
    let entries = "<entry><title>One</title><content>First.</content></entry>\
                   <entry><title>Two</title><content>Second.</content></entry>";
    for document in [
        format!("<rss version='2.0'><channel>{title}</channel>{items}</rss>"),
        format!("<rss>{title}{items}</rss>"),
        format!(
            "<RSS VERSION='2.0'><CHANNEL>{title}{}</CHANNEL></RSS>",
            items
                .to_uppercase()
                .replace("FIRST.", "First.")
                .replace("SECOND.", "Second.")
                .replace(">ONE", ">One")
                .replace(">TWO", ">Two")
        ),
        format!(
            "<rss version='2.0' xmlns='http://purl.org/rss/1.0/'><channel>{title}{items}</channel></rss>"
        ),
        format!(
            "<rss version='2.0' xmlns='http://my.own.example/ns'><channel>{title}{items}</channel></rss>"
        ),
        format!(
            "<rss version='2.0'><channel xmlns='http://www.w3.org/2005/Atom'>{title}{items}</channel></rss>"
        ),
        format!("<rss version='2.0'><channel>{title}{items}"),
        format!("<rss version='2.0'><channel>{title}<items>{items}</items></channel></rss>"),
        format!(
            "<rss version='2.0'><channel>{title}<image><title>Logo</title>{items}</channel></rss>"
        ),
        format!(
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://my.netscape.com/rdf/simple/0.9/'><channel>{title}</channel>{items}</rdf:RDF>"
        ),
        format!(
            "<r:rss xmlns:r='http://backend.userland.com/rss2'><channel>{title}{items}</channel></r:rss>"
        ),
        format!(
            "Warning: mysql_connect() in <b>/srv/feed.php</b>\n<?xml version='1.0'?><rss><channel>{title}{items}</channel></rss>"
        ),
        format!("<feed xmlns='http://purl.org/atom/ns#' version='0.3'>{title}{entries}</feed>"),
        format!("<feed xmlns='https://www.w3.org/2005/Atom/'>{title}{entries}</feed>"),
        format!("<feed>{title}{entries}</feed>"),
        format!(
            "<a:feed xmlns:a='http://www.w3.org/2005/Atom'>{}</a:feed>",
            format!("{title}{entries}")
                .replace("</", "\u{1}")
                .replace('<', "<a:")
                .replace('\u{1}', "</a:")
        ),
        format!(
            "<!DOCTYPE rss [<!ENTITY nbsp '&#160;'> <!ENTITY bomb '&nbsp;&nbsp;'>]><rss><channel>{title}{items}</channel></rss>"
        ),
    ] {
        reads(&document, &TWO).await;
    }
}

#[tokio::test]
async fn one_odd_entry_stops_no_other() {
    let rss = |odd: &str| {
        format!(
            "<rss version='2.0'><channel><title>Site</title><item>{odd}</item><item><title>Two</title><description>Second.</description></item></channel></rss>"
        )
    };
    for (odd, first) in [
        ("<title>Salt & cedar</title>", "Salt & cedar |  | Site"),
        (
            "<title>AT&T</title><description>a&b, c &d; e</description>",
            "AT&T | a&b, c &d; e | Site",
        ),
        ("<title>a < b</title>", "a < b |  | Site"),
        ("<title>One<br>line</title>", "One line |  | Site"),
        (
            "<title>One</title><description>Some <b>bold <i>text</description>",
            "One | Some bold text | Site",
        ),
        (
            "<title>One</title><description>A<p>B<p>C</description>",
            "One | A//B//C | Site",
        ),
        (
            "<title>One</headline><description>First.</description>",
            "One | First. | Site",
        ),
        ("<title>One", "One |  | Site"),
        (
            "<title>One</title><media:title/><media:content url=x><media:description/>",
            "One |  | Site",
        ),
        (
            "<title>One</title><media:thumbnail><media:title>Photo</media:title></media:thumbnail>",
            "One |  | Site",
        ),
        (
            "<title>One</title><content:encoded><![CDATA[<p>Long.</p>]]></content:encoded>",
            "One | Long. | Site",
        ),
        (
            "<title>One</title><dc:creator>Rosa</dc:creator>",
            "One |  | Rosa",
        ),
        (
            "<title>One</title><enclosure url=a length=>",
            "One |  | Site",
        ),
        (
            "<title>One</title><author>chen@garden.example（陈明）</author>",
            "One |  | 陈明",
        ),
        (
            "<title>One</title><author>“me@example.com” Ana</author>",
            "One |  | Ana",
        ),
        (
            "<title>One</title><author>Ana\u{A0}me@example.com</author>",
            "One |  | Ana",
        ),
        (
            "<title>One</title><author><name>Ana</name><email>a@b.example</email></author>",
            "One |  | Ana",
        ),
        (
            "<title>One &#0;&#xD83D;&#1;</title>",
            "One \u{FFFD}\u{FFFD} |  | Site",
        ),
        (
            "<title><![CDATA[One</title><description>First.</description>",
            "One | First. | Site",
        ),
        (
            "<title>One</title><description><!-- open First.</description>",
            "One | open First. | Site",
        ),
    ] {
        let document = rss(odd);
        let mut expected = vec![first, "Two | Second. | Site"];
        expected.sort_unstable();
        reads(&document, &expected).await;
    }
}

#[tokio::test]
async fn encodings_are_found() {
    let text = "<rss><channel><title>Новости</title><item><title>Рыбный рынок открылся у причала</title></item></channel></rss>";
    let (cyrillic, ..) = encoding_rs::WINDOWS_1251.encode(text);
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut marked = vec![0xFF, 0xFE];
    marked.extend(&wide);
    let labelled = format!("<?xml version='1.0' encoding='UTF-16'?>{text}");
    let named = format!("<?xml version='1.0' encoding='windows-1251'?>{text}");
    let (named, ..) = encoding_rs::WINDOWS_1251.encode(&named);
    for (content_type, body) in [
        ("text/xml; charset=windows-1251", &cyrillic[..]),
        ("text/xml;charset=\"cp1251\"", &cyrillic[..]),
        ("text/xml; charset=utf-8", &cyrillic[..]),
        ("text/xml", &cyrillic[..]),
        ("text/xml", &named[..]),
        ("text/xml; charset=iso-8859-1", text.as_bytes()),
        ("text/xml", &wide[..]),
        ("text/xml", &marked[..]),
        ("text/xml; charset=utf-16", labelled.as_bytes()),
    ] {
        let polled = poll_with(content_type, body, None).await.unwrap();
        assert_eq!(
            shown(&polled.posts),
            ["Рыбный рынок открылся у причала |  | Новости"],
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn texts_are_whole() {
    let atom = |content: &str| {
        format!(
            "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:media='http://search.yahoo.com/mrss/'><title>Site</title><entry><title>One</title>{content}</entry></feed>"
        )
    };
    for (content, text) in [
        (
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>See <a href='x' title='a &gt; \"b\"'>the <b>gate</b></a>.</div></content>",
            "See the gate.",
        ),
        (
            "<content type='xhtml'><div>Use &lt;b&gt; for cedar.</div></content>",
            "Use <b> for cedar.",
        ),
        (
            "<content type='html'>&lt;p>A &lt;b>b&lt;/b>&lt;/p></content>",
            "A b",
        ),
        (
            "<content type='html'><p>Not <b>escaped</b></p></content>",
            "Not escaped",
        ),
        ("<content type='text'>Use &lt;b&gt;</content>", "Use <b>"),
        ("<content type=''>Plain.</content>", "Plain."),
        (
            "<content type='TEXT/HTML; charset=utf-8'>&lt;i>Html&lt;/i></content>",
            "Html",
        ),
        (
            "<content type='application/x-unknown'>Some words here.</content>",
            "Some words here.",
        ),
        (
            "<content type='image/png'>iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==</content><summary>A picture.</summary>",
            "A picture.",
        ),
        (
            "<content src='https://site.example/1'/><summary>Short.</summary>",
            "Short.",
        ),
        (
            "<content/><summary type='html'>&lt;ul>&lt;li>a&lt;/li>&lt;/ul></summary>",
            "- a",
        ),
        (
            "<media:group><media:title>T</media:title><media:description>Of the video.</media:description></media:group>",
            "Of the video.",
        ),
        (
            "<content type='html'>&lt;pre>&lt;code>if a &amp;lt; b &amp;amp;&amp;amp; c&lt;/code>&lt;/pre></content>",
            "if a < b && c",
        ),
        (
            "<content type='html'>Write &lt;code>&amp;lt;br&amp;gt;&lt;/code> here</content>",
            "Write <br> here",
        ),
        (
            "<content type='html'>&lt;code>&amp;lt;template>&lt;/code> and &lt;code>&amp;lt;/p>&lt;/code></content>",
            "<template> and </p>",
        ),
        (
            "<content type='html'>&amp;lt;p&amp;gt;Escaped twice&amp;lt;/p&amp;gt;</content>",
            "Escaped twice",
        ),
        (
            "<content mode='base64' type='text/html'>PHA+SGVsbG88L3A+</content>",
            "Hello",
        ),
    ] {
        let document = atom(content);
        reads(&document, &[&format!("One | {text} | Site")]).await;
    }
}

#[tokio::test]
async fn json_feeds_are_read_item_by_item() {
    let feed = |items: &str| {
        format!(
            "{{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"Site\", \"items\": [{items}]}}"
        )
    };
    let two = r#"{"id": 2, "title": "Two", "content_text": "Second."}"#;
    for (odd, expected) in [
        (
            r#"{"id": 1, "title": "One", "content_text": "First."}"#,
            &TWO[..],
        ),
        (
            r#"{"id": 1.5, "title": "One", "content_text": "First.", "tags": 7, "image": {}}"#,
            &TWO[..],
        ),
        (
            r#"{"id": null, "title": "One", "content_html": "<p>First.</p>", "date_published": 5}"#,
            &TWO[..],
        ),
        (
            r#"{"id": "1", "title": "One", "content_text": "First.", "authors": {"name": ["x"]}}"#,
            &TWO[..],
        ),
        (
            r#"{"id": "1", "id": "1", "title": "One", "content_text": "First.", "deep": [[[[]]]]}"#,
            &TWO[..],
        ),
        (
            r#"{"id": "1", "title": "One", "content_text": "First.", "authors": [{"name": "jane@garden.example (Jane)"}]}"#,
            &["One | First. | Jane", TWO[1]][..],
        ),
        (
            r#"{"id": "1", "title": "One", "content_text": "First.", "author": "Jane"}"#,
            &["One | First. | Jane", TWO[1]][..],
        ),
        ("7", &TWO[1..]),
        ("null, [], \"x\"", &TWO[1..]),
        (r#"{"id": true, "title": {"a": 1}}"#, &TWO[1..]),
    ] {
        for mark in ["", "\u{FEFF}", "\r\n "] {
            let document = format!("{mark}{}", feed(&format!("{odd}, {two}")));
            reads(&document, expected).await;
        }
    }
    // A document that was cut off.
    let document = feed(&format!("{two}, {{\"id\": 3, \"tit"));
    reads(&document[..document.len() - 2], &TWO[1..]).await;
}

#[tokio::test]
async fn skipped_entries_and_empty_feeds_show() {
    let polled = poll("<rss><channel><title>Site</title></channel></rss>").await;
    assert_eq!(polled.notice, Some("The feed has no entries."));
    let json =
        "{\"version\": \"1\", \"items\": [{\"id\": \"1\", \"title\": \"A\"}, {\"id\": \"2\", \"ti";
    for cut in [
        "<rss><channel><item><title>A</title></item><item><title>B",
        json,
    ] {
        let notice = poll(cut).await.notice;
        assert!(
            notice.is_some_and(|notice| notice.contains("too early")),
            "{cut}"
        );
    }
    let whole = poll("<rss><channel><item><title>A</title></item></channel></rss>").await;
    assert_eq!(whole.notice, None);
    let polled =
        poll("<rss><channel><item><link>https://site.example/1</link></item></channel></rss>")
            .await;
    let readable: Vec<bool> = polled.skipped.iter().map(|one| one.is_readable).collect();
    assert_eq!(readable, [true], "{polled:?}");
    for page in [
        "<html><body>Not found</body></html>",
        "",
        "   ",
        "plain text",
        "{\"a\": 1}",
        "[1, 2]",
        "\u{0}\u{1}",
    ] {
        let error = poll_with("text/html", page.as_bytes(), None)
            .await
            .unwrap_err();
        assert!(matches!(error, PollError::Malformed(_)), "{page}: {error}");
    }
}

#[tokio::test]
async fn shared_ids_and_links_are_told_apart() {
    let item = |number: usize, id: &str| format!("<item><title>Title {number}</title>{id}</item>");
    for id in [
        "<guid>N/A</guid>",
        "<guid>same</guid>",
        "<link>https://site.example/</link>",
        "<guid>https://site.example/</guid><link>https://site.example/</link>",
    ] {
        let document = |numbers: &[usize]| {
            let items: String = numbers.iter().map(|number| item(*number, id)).collect();
            format!("<rss><channel>{items}</channel></rss>")
        };
        let first = poll(&document(&[2, 1])).await;
        assert_eq!(first.posts.len(), 2, "{id}");
        let again = document(&[3, 2, 1, 1]);
        let second = poll_with("", again.as_bytes(), Some(&first.cursor))
            .await
            .unwrap();
        assert_eq!(second.posts.len(), 1, "{id}");
        assert_ne!(first.posts[0].id, first.posts[1].id);
        // One at a time, too.
        let alone = document(&[4]);
        let third = poll_with("", alone.as_bytes(), Some(&second.cursor))
            .await
            .unwrap();
        assert_eq!(third.posts.len(), 1, "{id}");
        assert!(
            id.contains("N/A")
                || third
                    .notice
                    .is_some_and(|notice| notice.contains("same id")),
            "{id}: {:?}",
            third.notice
        );
    }
}

#[tokio::test]
async fn hostile_documents_are_bounded() {
    let rss = |inside: &str| format!("<rss version='2.0'><channel><title>Site</title>{inside}");
    let json = |items: &str| format!("{{\"version\": \"1\", \"items\": [{items}");
    let attributes: String = (0..100_000).map(|number| format!(" a{number}")).collect();
    for document in [
        rss(&"<item/>".repeat(400_000)),
        rss(&"<item><title>a</title></item>".repeat(100_000)),
        rss(&"<item>".repeat(300_000)),
        rss(&format!(
            "<item><title>a{}",
            "<media:group>".repeat(200_000)
        )),
        rss(&format!(
            "<item><title>a</title><description>{}",
            "<b>".repeat(500_000)
        )),
        rss(&format!(
            "<item><title>a</title><description><b{attributes}>x</b>"
        )),
        rss(&format!("<item{attributes}><title>a")),
        rss(&"<!--".repeat(500_000)),
        rss(&"<?".repeat(500_000)),
        rss(&"<![CDATA[".repeat(300_000)),
        rss(&"<![CDATA[]]>&amp;".repeat(100_000)),
        rss(&format!("<item>{}", "<author>a".repeat(300_000))),
        rss(&format!(
            "<item>{}",
            "<link>https://a.example/</link>".repeat(60_000)
        )),
        rss(&"</item>".repeat(400_000)),
        rss(&format!(
            "{}<item>{}",
            format!("<a xml:base='{}/'>", "x".repeat(8_000)).repeat(100),
            "<link>a</link>".repeat(1_000)
        )),
        rss(&format!(
            "<item><title>a</title><description><![CDATA[<pre>{}{}",
            "\n".repeat(262_144),
            "<p>".repeat(87_000)
        )),
        rss(&format!(
            "<item><title>a</title><description><![CDATA[{}{}",
            "<br>".repeat(65_000),
            "<p>".repeat(87_000)
        )),
        rss(&format!(
            "<item>{}",
            "<pubDate>a b c d e f g h i j k l m n o p q r s t u v w x y z</pubDate>".repeat(37_000)
        )),
        rss(&format!("<item><title>{}", "<![CDATA[</t".repeat(300_000))),
        json(&format!(
            "{{{}\"id\":1}}",
            "\"author\":\"\",".repeat(300_000)
        )),
        json(&format!(
            "{{}}],{}\"a\":[",
            "\"items\":{\"id\":1},".repeat(200_000)
        )),
        json(&"{\"items\":[{\"id\":1},{\"id\":2},{\"id\":3}]},".repeat(80_000)),
        format!("<rss{}>", " xmlns:a='b'".repeat(300_000)),
        json(&"{},".repeat(1_000_000)),
        json(&"[".repeat(1_000_000)),
        json(&"{\"authors\": [{}, {}, {}]},".repeat(100_000)),
        "<".repeat(2_000_000),
        "&".repeat(2_000_000),
    ] {
        let polled = poll_with("", document.as_bytes(), None).await;
        let count = polled.map_or(0, |polled| polled.posts.len());
        assert!(count <= 2_000, "{count}: {}", &document[..60]);
    }
}

/// Documents of several readings; which posts each brings.
async fn readings(documents: &[(&str, &[&str])]) {
    let mut cursor: Option<Cursor> = None;
    for (items, expected) in documents {
        let document =
            format!("<rss version='2.0'><channel><title>Site</title>{items}</channel></rss>");
        let polled = poll_with("", document.as_bytes(), cursor.as_ref())
            .await
            .unwrap();
        let titles: Vec<_> = polled
            .posts
            .iter()
            .filter_map(|post| post.title.as_deref())
            .collect();
        assert_eq!(titles, *expected, "{document}");
        cursor = Cursor::from_json(&polled.cursor.to_json());
    }
}

fn item(title: &str, rest: &str) -> String {
    format!("<item><title>{title}</title>{rest}</item>")
}

#[tokio::test]
async fn entries_are_identified_over_several_readings() {
    let dated = |title: &str, hour: u8, rest: &str| {
        let day = Timestamp::now().to_chrono().format("%Y-%m-%d");
        item(
            title,
            &format!("<pubDate>{day} 00:{hour:02}:00</pubDate>{rest}"),
        )
    };
    // One entry at a time, under one id, or under the address of the site.
    for id in ["<guid>latest</guid>", "<link>https://site.example/</link>"] {
        let links = [
            "<link>https://site.example/a</link>",
            "<link>https://site.example/b</link>",
        ];
        let links = if id.starts_with("<guid>") {
            links
        } else {
            ["", ""]
        };
        let (a, b) = (
            dated("A", 1, &format!("{id}{}", links[0])),
            dated("B", 2, &format!("{id}{}", links[1])),
        );
        readings(&[(&a, &["A"]), (&a, &[]), (&b, &["B"]), (&b, &[])]).await;
    }
    // An edit is no new entry.
    let guid = "<guid>1</guid><link>https://site.example/1</link>";
    let (a, edited) = (dated("A", 1, guid), dated("A, edited", 2, guid));
    readings(&[(&a, &["A"]), (&edited, &[])]).await;
    // The same title and date under another address, next to the known one.
    let link =
        |id: u8| format!("<guid>{id}</guid><link>https://site.example/view.php?id={id}</link>");
    let (a, b) = (
        dated("New comment", 1, &link(1)),
        dated("New comment", 1, &link(2)),
    );
    readings(&[
        (&a, &["New comment"]),
        (&format!("{b}{a}"), &["New comment"]),
        (&format!("{b}{a}"), &[]),
    ])
    .await;
    // A session in the links of a text.
    let text = |sid: u8| {
        let text = format!(
            "<description><![CDATA[<a href='https://site.example/?sid={sid}'>Shears</a>]]></description>"
        );
        dated(
            "A",
            1,
            &format!("<guid>https://site.example/t?sid={sid}</guid>{text}"),
        )
    };
    readings(&[(&text(1), &["A"]), (&text(2), &[]), (&text(3), &[])]).await;
    // An entry of long ago that appears among known ones, in either order.
    let old = item("Old", "<guid>old</guid><pubDate>2015-01-01</pubDate>");
    let known =
        dated("Known", 1, "<guid>known</guid>") + &dated("Known too", 2, "<guid>too</guid>");
    let new = dated("New", 3, "<guid>new</guid>");
    readings(&[
        (&known, &["Known", "Known too"]),
        (&format!("{known}{old}{new}"), &["Old", "New"]),
    ])
    .await;
}

#[tokio::test]
async fn revisions_of_one_entry_are_one() {
    let entry = |title: &str, minute: u8| {
        format!(
            "<entry><id>tag:a,1</id><title>{title}</title><updated>2026-01-05T10:{minute:02}:00Z</updated></entry>"
        )
    };
    let document = format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'>{}{}</feed>",
        entry("A, edited", 2),
        entry("A", 1)
    );
    let polled = poll(&document).await;
    assert_eq!((polled.posts.len(), polled.notice), (1, None));
}

#[tokio::test]
async fn namespaces_and_marks_by_error_lose_nothing() {
    let items = "<item><title>One</title><description>First.</description></item><item><title>Two</title><description>Second.</description></item>";
    for root in [
        "http://search.yahoo.com/mrss/",
        "http://purl.org/dc/elements/1.1/",
        "http://www.w3.org/1999/xhtml",
        "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "x",
    ] {
        reads(
            &format!("<rss xmlns='{root}'><channel><title>Site</title>{items}</channel></rss>"),
            &TWO,
        )
        .await;
        let own = items.replace("<item>", &format!("<item xmlns='{root}'>"));
        reads(
            &format!("<rss><channel><title>Site</title>{own}</channel></rss>"),
            &TWO,
        )
        .await;
    }
    let rss = |namespaces: &str, inner: &str| {
        format!(
            "<rss {namespaces}><channel><title>Site</title><item><title>One</title>{inner}</item></channel></rss>"
        )
    };
    for (namespaces, inner, expected) in [
        (
            "xmlns:content='http://purl.org/rss/modules/content/'",
            "<content:encoded>Long.</content:encoded>",
            "One | Long. | Site",
        ),
        (
            "xmlns:media='http://www.rssboard.org/media-rss'",
            "<media:description type='html'>&lt;p>A &lt;b>bowl&lt;/b>&lt;/p></media:description>",
            "One | A bowl | Site",
        ),
        (
            "xmlns:media='http://search.yahoo.com/mrss/'",
            "<description><![CDATA[<img src='x'>]]></description><media:description>A bowl</media:description>",
            "One | A bowl | Site",
        ),
        (
            "",
            "<author>Jane<description>First.</description>",
            "One | First. | Jane",
        ),
        (
            "",
            "<description>First.</description><category><id>5</id></category>",
            "One | First. | Site",
        ),
    ] {
        reads(&rss(namespaces, inner), &[expected]).await;
    }
    let link = poll(&rss(
        "",
        "<link>https://bakery.example/?id=2&section=bread&copy=1</link>",
    ))
    .await;
    assert_eq!(
        link.posts[0].url,
        "https://bakery.example/?id=2&section=bread&copy=1"
    );
    let json = "{\"version\": \"1\", \"title\": \"Site\", \"items\": [{\"id\": 1, \"title\": \"One\", \"content_text\": \"First.\", \"author\": false,}, \
                {\"id\": 2, \"title\": \"Two\", \"content_html\": \"<img>\", \"content_text\": \"Second.\", \"authors\": 7},]}";
    reads(json, &TWO).await;
    reads(&format!("\u{FEFF}\u{FEFF}\n\u{FEFF}{json}"), &TWO).await;
}

#[tokio::test]
async fn titles_about_markup_keep_it() {
    for (title, text) in [
        (
            "Self-closing &lt;br/&gt; in React",
            "Self-closing <br/> in React",
        ),
        ("Use &lt;/ul&gt;", "Use </ul>"),
        ("Why &lt;template&gt; matters", "Why <template> matters"),
        ("A &lt;b&gt;bold&lt;/b&gt; claim", "A bold claim"),
        ("Vec&lt;T&gt; &amp;amp; co", "Vec<T> & co"),
    ] {
        let document = format!(
            "<rss><channel><title>Site</title><item><title>{title}</title></item></channel></rss>"
        );
        reads(&document, &[&format!("{text} |  | Site")]).await;
    }
}

#[tokio::test]
async fn answer_304_to_no_condition_is_an_error() {
    let feeds = FeedAdapter::new("boards".into(), Source::Forum, None, always(304, ""));
    let first = poll("<rss><channel><item><title>A</title></item></channel></rss>").await;
    let limits = PollLimits::default();
    for cursor in [None, Some(&first.cursor)] {
        assert!(
            feeds
                .poll("https://site.example/feed", cursor, &limits)
                .await
                .is_err()
        );
    }
}
