//! Results of submissions: applied, or refused with a reason that names the cause.

use std::{io::Write, time::Duration};

use domain::{
    Instructions,
    instructions::Term,
    manager::{ApplyErrorCode, ManagerState, SourceType},
};
use flate2::{Compression, write::GzEncoder};
use test_support::{Answer, TestServer};

use crate::support::{ESPRESSO, World, applied};

/// A customer's server with a page of each kind.
async fn customer() -> TestServer {
    TestServer::start(|_, request| match &*request.path {
        "/" => Answer::page(ESPRESSO),
        "/moved" => Answer::redirect("/"),
        "/large" => Answer::Long(100 * 1024 * 1024),
        "/metadata" => Answer::redirect("http://169.254.169.254/latest/meta-data/"),
        "/loop" => Answer::redirect("/loop"),
        "/empty" => Answer::page(""),
        "/hang" => Answer::Hang,
        "/words" => Answer::page("<p>and then you will have been there for it"),
        "/script" => Answer::page(&format!(
            "<script>{}</script><div id=root></div>",
            "render('espresso machine');".repeat(80_000)
        )),
        "/login" => Answer::page(
            "<title>Sign in | Portal</title><h1>Log in to continue</h1><form><p>User name and password</p></form>",
        ),
        "/pdf" => Answer::Full {
            status: 200,
            headers: vec![("content-type", "application/pdf".to_owned())],
            body: b"%PDF-1.7 espresso machines".to_vec(),
        },
        "/broken" => Answer::Status(503),
        "/bomb" => Answer::Full {
            status: 200,
            headers: vec![
                ("content-type", "text/html".to_owned()),
                ("content-encoding", "gzip".to_owned()),
            ],
            body: bomb(),
        },
        "/cut" => Answer::Full {
            status: 200,
            headers: vec![
                ("content-type", "text/html".to_owned()),
                ("content-encoding", "gzip".to_owned()),
            ],
            body: bomb()[..1_000].to_vec(),
        },
        // Encoded in windows-1252, although the head says otherwise.
        "/charset" => Answer::Full {
            status: 200,
            headers: vec![("content-type", "text/html; charset=utf-8".to_owned())],
            body: b"<title>Caf\xe9 Cr\xe8me</title><h1>Caf\xe9 and espresso machines</h1>\
                <p>Our espresso machines na\xefvely brew caf\xe9. Portafilters of the caf\xe9.</p>"
                .to_vec(),
        },
        // Contains no text that is valid in the declared encoding.
        "/gibberish" => Answer::Full {
            status: 200,
            headers: vec![("content-type", "text/html; charset=utf-16".to_owned())],
            body: (0..3_000_u32).flat_map(|i| [(i % 251) as u8 | 0x80, 0xd8]).collect(),
        },
        "/slow" => Answer::after(Duration::from_secs(9), Answer::page(ESPRESSO)),
        "/binary" => Answer::Full {
            status: 200,
            headers: vec![("content-type", "image/png".to_owned())],
            body: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".repeat(50),
        },
        _ => Answer::Status(404),
    })
    .await
}

/// Returns about thirty kilobytes that decompress to thirty megabytes.
fn bomb() -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..30 {
        gzip.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    gzip.finish().unwrap()
}

/// A page that declares the wrong encoding is read in its real encoding: its words count.
#[tokio::test]
async fn wrong_charset_loses_no_words() {
    let world = World::new().await;
    let server = customer().await;
    let compiler = world.compiler();
    let name = world.automatic(&[server.url("/charset")]).await;
    world.publish_submitted(name, 1).await;
    let instructions = world.until(name, "APPLIED").await.instructions.unwrap();
    let terms: Vec<&str> = instructions
        .include
        .iter()
        .map(|term| &*term.text)
        .collect();
    assert!(
        terms.contains(&"espresso") && terms.contains(&"cafe"),
        "{terms:?}"
    );
    compiler.stop().await;
}

#[tokio::test]
async fn page_becomes_applied_instructions() {
    let world = World::new().await;
    let server = customer().await;
    let mut news = world.news();
    let compiler = world.compiler();
    let name = world
        .automatic(&[server.url("/moved"), server.url("/nowhere")])
        .await;
    world.publish_submitted(name, 1).await;
    let manager = world.until(name, "APPLIED").await;

    let instructions = manager.instructions.unwrap();
    let terms: Vec<&str> = instructions
        .include
        .iter()
        .map(|term| &*term.text)
        .collect();
    assert!(terms.contains(&"espresso"), "{terms:?}");
    let feeds: Vec<&str> = instructions
        .feeds
        .iter()
        .map(|feed| feed.as_str())
        .collect();
    assert_eq!(feeds, ["hackernews:newest", "lemmy:newest"]);
    assert!(manager.apply_error.is_none() && manager.apply_time.is_some());
    let watched = world
        .database
        .texts("name", "feeds WHERE watched ORDER BY name")
        .await;
    assert_eq!(watched, feeds);

    let event = applied(&mut news).await;
    assert_eq!((event.name, event.generation), (name, 1));
    let version = world.database.texts("version", "plan_version").await;
    assert_eq!(version, [event.plan_version.to_string()]);
    compiler.stop().await;
}

#[tokio::test]
async fn failed_compile_states_its_reason() {
    use ApplyErrorCode::{ForbiddenAddress, NoReachableUrl, NoUsableContent};
    let world = World::new().await;
    let server = customer().await;
    let compiler = world.compiler();
    let cases = [
        (server.url("/large"), NoUsableContent, "larger than"),
        (server.url("/metadata"), ForbiddenAddress, "169.254.169.254"),
        ("http://10.0.0.1/".to_owned(), ForbiddenAddress, "10.0.0.1"),
        ("http://127.0.0.1:2/".to_owned(), NoReachableUrl, "refused"),
        (server.url("/nowhere"), NoReachableUrl, "answered 404"),
        (server.url("/loop"), NoReachableUrl, "redirect"),
        (server.url("/hang"), NoReachableUrl, "timed out"),
        (server.url("/empty"), NoUsableContent, "page without text"),
        (server.url("/script"), NoUsableContent, "page without text"),
        (server.url("/login"), NoUsableContent, "asks for a login"),
        (server.url("/pdf"), NoUsableContent, "application/pdf"),
        (server.url("/broken"), NoReachableUrl, "answered 503"),
        (
            server.url("/bomb"),
            NoUsableContent,
            "larger than 4194304 bytes when decompressed",
        ),
        (server.url("/cut"), NoUsableContent, "cannot decompress"),
        (
            server.url("/gibberish"),
            NoUsableContent,
            "correct the charset",
        ),
        (server.url("/slow"), NoReachableUrl, "timed out after 8s"),
        (server.url("/binary"), NoUsableContent, "image/png"),
        (
            server.url("/words"),
            NoUsableContent,
            "no words that describe",
        ),
    ];
    let mut names = Vec::new();
    for (url, ..) in &cases {
        let name = world.automatic(std::slice::from_ref(url)).await;
        world.publish_submitted(name, 1).await;
        names.push(name);
    }
    let mut wrong = Vec::new();
    for (mut name, (url, code, cause)) in names.into_iter().zip(cases) {
        let error = loop {
            let manager = world.until(name, "APPLY_FAILED").await;
            assert!(manager.instructions.is_none());
            let error = manager.apply_error.unwrap();
            // A busy machine answers late.
            if cause.starts_with("timed out") || !error.message.contains("timed out") {
                break error;
            }
            name = world.automatic(std::slice::from_ref(&url)).await;
            world.publish_submitted(name, 1).await;
        };
        let heading = match code {
            NoReachableUrl => "no url answered: ",
            ForbiddenAddress => "no url is allowed: ",
            _ => "no usable content on any url: ",
        };
        let advice = match code {
            NoReachableUrl => {
                "Apply again when one of them is reachable from the internet, or give other urls."
            }
            ForbiddenAddress => "Give urls on the public internet.",
            _ => {
                "Give a public page with its text in the HTML, not rendered by scripts or behind a login."
            }
        };
        let told = error.message.starts_with(&format!("{heading}{url}: "))
            && error.message.ends_with(&format!(". {advice}"));
        if error.code != code || !told || !error.message.contains(cause) {
            wrong.push(format!("{url}: {error:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(world.database.count("feeds").await, 0);
    compiler.stop().await;
}

#[tokio::test]
async fn each_url_that_failed_is_named() {
    let world = World::new().await;
    let server = customer().await;
    let compiler = world.compiler();
    let urls = [server.url("/nowhere"), "http://127.0.0.1:2/x".to_owned()];
    let name = world.automatic(&urls).await;
    world.publish_submitted(name, 1).await;
    let error = world.until(name, "APPLY_FAILED").await.apply_error.unwrap();
    assert_eq!(error.code, ApplyErrorCode::NoReachableUrl);
    for url in &urls {
        assert!(error.message.contains(&**url), "{}", error.message);
    }
    compiler.stop().await;
}

#[tokio::test]
async fn forbidden_url_sets_the_code_and_all_failures_are_listed() {
    let world = World::new().await;
    let compiler = world.compiler();
    let server = customer().await;
    let mut urls = vec![server.url("/empty"), "http://10.0.0.1/".to_owned()];
    for index in 0..18 {
        urls.push(server.url(&format!("/nowhere{index}/{}", "a".repeat(1_500))));
    }
    let name = world.automatic(&urls).await;
    world.publish_submitted(name, 1).await;
    let error = world.until(name, "APPLY_FAILED").await.apply_error.unwrap();
    assert_eq!(error.code, ApplyErrorCode::ForbiddenAddress);
    let heading = "some urls are not allowed, and no other page describes the subject: ";
    assert!(error.message.starts_with(heading), "{}", error.message);
    assert!(
        error.message.contains("http://10.0.0.1/: "),
        "{}",
        error.message
    );
    assert!(error.message.contains(" more. "), "{}", error.message);
    assert!(error.message.chars().count() <= 1_000);
    compiler.stop().await;
}

#[tokio::test]
async fn instructions_without_feeds_watch_the_newest_posts() {
    let world = World::new().await;
    let compiler = world.compiler();
    let instructions = Instructions {
        feeds: Vec::new(),
        ..test_support::instructions("kettle")
    };
    for (source, expected) in [
        (
            SourceType::Forum,
            &["hackernews:newest", "lemmy:newest"][..],
        ),
        (SourceType::Network, &["blog:newest"][..]),
    ] {
        let name = world.manual(source, instructions.clone()).await;
        world.publish_submitted(name, 1).await;
        let manager = world.until(name, "APPLIED").await;
        let found = manager.instructions.unwrap();
        let feeds: Vec<&str> = found.feeds.iter().map(|feed| feed.as_str()).collect();
        assert_eq!(feeds, expected);
        assert_eq!(found.include, instructions.include);
    }
    compiler.stop().await;
}

#[tokio::test]
async fn instructions_that_cannot_be_executed_are_refused() {
    let world = World::new().await;
    let compiler = world.compiler();
    let with = |text: &str, weight| Instructions {
        include: vec![Term {
            text: text.to_owned(),
            weight,
        }],
        ..test_support::instructions("kettle")
    };
    let blank = with(" ... ", 1.0);
    let heavy = with("kettle", 1e300);
    let homeless = Instructions {
        feeds: Vec::new(),
        ..test_support::instructions("kettle")
    };
    for (source, instructions, cause) in [
        (SourceType::Forum, blank, "`include[0]"),
        (SourceType::Forum, heavy, "`include[0]"),
        (SourceType::Microblog, homeless, "MICROBLOG"),
    ] {
        let name = world.manual(source, instructions).await;
        world.publish_submitted(name, 1).await;
        let manager = world.until(name, "APPLY_FAILED").await;
        let error = manager.apply_error.unwrap();
        assert_eq!(error.code, ApplyErrorCode::InvalidInstructions);
        assert!(error.message.contains(cause), "{}", error.message);
        assert_eq!(manager.state, ManagerState::ApplyFailed);
    }
    compiler.stop().await;
}
