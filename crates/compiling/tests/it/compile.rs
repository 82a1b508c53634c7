//! Compiles invented pages to instructions, and uses them to decide on invented posts.

use compiling::{
    compile::{CompileFailure, FetchedPage, compile},
    feeds::Platform,
};
use domain::{Focus, Instructions, Sensitivity, instructions::NameKind};
use matching::{Plan, PostText};

const ESPRESSO: &str = include_str!("pages/espresso.html");
const BACKUP: &str = include_str!("pages/backup.html");
const BIKES: &str = include_str!("pages/bikes.html");

fn page(url: &str, body: &str) -> FetchedPage {
    FetchedPage {
        url: url.parse().expect("a well-formed url"),
        content_type: Some("text/html; charset=utf-8".to_owned()),
        body: body.as_bytes().to_vec(),
    }
}

fn compiled(url: &str, body: &str, focus: Focus, watch: &[&str]) -> Instructions {
    let watch: Vec<String> = watch.iter().map(|&name| name.to_owned()).collect();
    compile(
        &[page(url, body)],
        focus,
        Sensitivity::Balanced,
        &watch,
        "FORUM",
        &[],
    )
    .expect("usable pages")
}

/// Returns the texts of the posts that match.
fn matching<'a>(instructions: &Instructions, posts: &[&'a str]) -> Vec<&'a str> {
    let plan = Plan::compile(instructions).expect("sound instructions");
    let value = |post: &&&str| {
        let text = PostText::new(None, Some(post));
        matching::evaluate(&plan, &text, None).value
    };
    posts.iter().filter(value).copied().collect()
}

fn has_term(instructions: &Instructions, text: &str) -> bool {
    instructions.include.iter().any(|term| term.text == text)
}

#[test]
fn an_espresso_machine_maker_finds_buyers() {
    let instructions = compiled(
        "https://www.brewforge.example/",
        ESPRESSO,
        Focus::Sales,
        &[],
    );
    for term in [
        "espresso",
        "lever",
        "espresso machines",
        "grinders",
        "portafilter",
    ] {
        assert!(
            has_term(&instructions, term),
            "{term}: {:?}",
            instructions.include
        );
    }
    for term in [
        "cookies",
        "newsletter",
        "pricing",
        "brewforge",
        "jane",
        "machines espresso",
    ] {
        assert!(!has_term(&instructions, term), "{term}");
    }
    assert!(instructions.include.len() <= 40);
    assert_eq!(instructions.names[0].text, "Brewforge");
    assert!(instructions.brief.contains("Brewforge") && instructions.brief.contains("espresso"));

    let relevant = [
        "Can anyone recommend an espresso machine for home? Looking for a lever machine, budget 900.",
        "What is the best espresso grinder to buy under 300? Any suggestions for a small kitchen?",
    ];
    let other = [
        "Had a lovely espresso this morning in Rome.",
        "Can anyone recommend a good book on Roman history? Looking for suggestions.",
        "My laptop does not boot any more, what should I buy?",
        "We use cookies and a newsletter. Any suggestions on pricing?",
    ];
    assert_eq!(
        matching(&instructions, &[relevant.as_slice(), &other].concat()),
        relevant
    );
}

#[test]
fn a_backup_service_watches_its_rivals() {
    let instructions = compiled("https://packrat.example/", BACKUP, Focus::Competitor, &[]);
    let watched: Vec<_> = instructions
        .names
        .iter()
        .filter(|name| name.kind == NameKind::Watched)
        .map(|name| name.text.as_str())
        .collect();
    assert_eq!(
        watched,
        ["Chest", "Stashbox", "Old Faithful Vault", "OFV", "Hoardly"]
    );
    let relevant = [
        "Moved from Stashbox to Hoardly last week, restores are much faster.",
        "Is old faithful vault better than a NAS for off-site copies?",
        "Chest keeps losing my backup. Which storage is more reliable?",
    ];
    let other = [
        "My chest hurts after the gym, is that normal?",
        "The Chest of drawers arrived broken.",
        "How do you keep your photos safe?",
    ];
    assert_eq!(
        matching(&instructions, &[relevant.as_slice(), &other].concat()),
        relevant
    );
}

#[test]
fn names_that_the_customer_gives_replace_those_of_the_pages() {
    let instructions = compiled(
        "https://packrat.example/",
        BACKUP,
        Focus::Competitor,
        &["Tapeworm Pro"],
    );
    let watched = instructions
        .names
        .iter()
        .filter(|name| name.kind == NameKind::Watched);
    let texts: Vec<_> = watched
        .map(|name| (name.text.as_str(), name.aliases.clone()))
        .collect();
    assert_eq!(texts, [("Tapeworm Pro", vec!["TapewormPro".to_owned()])]);
}

#[test]
fn bike_shop_finds_complaints() {
    let instructions = compiled("https://spoke-and-sons.example/", BIKES, Focus::Crisis, &[]);
    let own = instructions
        .names
        .iter()
        .filter(|name| name.kind == NameKind::Own);
    let spellings: Vec<_> = own
        .flat_map(|name| name.aliases.iter().chain([&name.text]))
        .collect();
    assert!(
        spellings.iter().any(|spelling| *spelling == "Spoke & Sons"),
        "{spellings:?}"
    );
    let relevant = [
        "Terrible service at Spoke & Sons, still waiting for a refund after six weeks.",
        "@spokeandsons the brakes that you fixed failed again. Never again!",
    ];
    let other = [
        "Terrible service at the airport, still waiting for a refund.",
        "I bought a bike and it is great.",
    ];
    assert_eq!(
        matching(&instructions, &[relevant.as_slice(), &other].concat()),
        relevant
    );
}

#[test]
fn sensitivity_sets_the_threshold_and_nothing_else() {
    let pages = [page("https://www.brewforge.example/", ESPRESSO)];
    for focus in Focus::ALL {
        let balanced = compile(&pages, focus, Sensitivity::Balanced, &[], "FORUM", &[]).unwrap();
        let mut thresholds = Vec::new();
        for sensitivity in Sensitivity::ALL {
            let compiled = compile(&pages, focus, sensitivity, &[], "FORUM", &[]).unwrap();
            thresholds.extend(compiled.threshold);
            let with_other_threshold = Instructions {
                threshold: balanced.threshold,
                ..compiled
            };
            assert_eq!(with_other_threshold, balanced);
        }
        assert!(thresholds.is_sorted_by(|a, b| a > b), "{thresholds:?}");
        assert_eq!(thresholds.len(), 3);
    }
}

#[test]
fn same_pages_compile_to_the_same_plan() {
    let pages = [
        page("https://www.brewforge.example/", ESPRESSO),
        page(
            "https://www.brewforge.example/grinders",
            "<title>Grinders | Brewforge</title><main><h1>Conical burr grinders</h1><p>Titanium burrs for filter and espresso.</p></main>",
        ),
    ];
    let once = compile(
        &pages,
        Focus::Sales,
        Sensitivity::Balanced,
        &[],
        "FORUM",
        &[],
    )
    .unwrap();
    assert!(
        has_term(&once, "burr") || has_term(&once, "burrs"),
        "{:?}",
        once.include
    );
    for _ in 0..3 {
        assert_eq!(
            compile(
                &pages,
                Focus::Sales,
                Sensitivity::Balanced,
                &[],
                "FORUM",
                &[]
            )
            .unwrap(),
            once
        );
    }
}

#[test]
fn platform_pages_only_name_feeds() {
    let platforms = [
        Platform {
            name: "lemmy.example".to_owned(),
            kind: platforms::registry::kind("lemmy").unwrap(),
            source: "FORUM".to_owned(),
            base_url: "https://lemmy.example".parse().ok(),
        },
        Platform {
            name: "hackernews".to_owned(),
            kind: platforms::registry::kind("hackernews").unwrap(),
            source: "FORUM".to_owned(),
            base_url: None,
        },
    ];
    let community = page(
        "https://lemmy.example/c/espresso",
        "<p>llamas llamas llamas</p>",
    );
    let subject = page("https://www.brewforge.example/", ESPRESSO);
    let feeds = |pages: &[FetchedPage]| {
        let instructions = compile(
            pages,
            Focus::Sales,
            Sensitivity::Balanced,
            &[],
            "FORUM",
            &platforms,
        )
        .unwrap();
        assert!(!has_term(&instructions, "llamas"));
        instructions
            .feeds
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        feeds(&[community.clone(), subject.clone()]),
        ["lemmy.example:c/espresso"]
    );
    assert_eq!(
        feeds(&[subject]),
        ["hackernews:newest", "lemmy.example:newest"]
    );
    let failure = compile(
        &[community],
        Focus::Sales,
        Sensitivity::Balanced,
        &[],
        "FORUM",
        &platforms,
    );
    assert_eq!(failure, Err(CompileFailure::OnlyPlatformPages));
}

#[test]
fn pages_without_usable_content_fail_with_the_code() {
    let nothing = [
        page("https://a.example/", ""),
        page(
            "https://b.example/",
            "<script>render()</script><div id=root></div>",
        ),
        FetchedPage {
            url: "https://c.example/x.png".parse().unwrap(),
            content_type: Some("image/png".to_owned()),
            body: vec![0x89, b'P', b'N', b'G', 0, 1, 2, 3],
        },
    ];
    for pages in [&nothing[..], &[]] {
        let failure = compile(
            pages,
            Focus::Sales,
            Sensitivity::Balanced,
            &[],
            "FORUM",
            &[],
        )
        .unwrap_err();
        assert_eq!(failure.code(), "no_usable_content");
    }
}

#[test]
fn hostile_pages_stay_within_the_bounds() {
    let names: String = (0..5_000)
        .map(|i| format!("<li>Packrat vs Rival{i}x</li>"))
        .collect();
    let words: String = (0..20_000).map(|i| format!("word{i}abc ")).collect();
    let body = format!("<title>Packrat</title><h1>{words}</h1><ul>{names}</ul><p>{words}</p>");
    let watch: Vec<String> = (0..50)
        .map(|i| format!("{} {i}", "Name ".repeat(18).trim()))
        .collect();
    for watch in [&watch[..], &[]] {
        let pages = [page("https://packrat.example/", &body)];
        let instructions = compile(
            &pages,
            Focus::Competitor,
            Sensitivity::Balanced,
            watch,
            "FORUM",
            &[],
        )
        .unwrap();
        let names = instructions.names.iter();
        let of_names = names.flat_map(|name| {
            std::iter::once(&name.text)
                .chain(&name.aliases)
                .chain(&name.context)
        });
        let terms: Vec<&String> = instructions
            .include
            .iter()
            .map(|term| &term.text)
            .chain(of_names)
            .collect();
        assert!(
            terms.len() <= domain::instructions::MAX_TERMS,
            "{}",
            terms.len()
        );
        assert!(
            terms
                .iter()
                .all(|term| (1..=100).contains(&term.chars().count()))
        );
        Plan::compile(&instructions).unwrap();
    }
}

/// A cost that is quadratic would exceed the runner's limit, which is minutes.
#[test]
fn hostile_pages_take_time_in_proportion_to_their_size() {
    let prose =
        "We make the tools that every garden needs, and we repair the old ones. ".repeat(60);
    let title = "<html lang=en><title>Shop tools</title><h1>Good garden tools for people</h1>";
    // Each of many owners after a subject of many words.
    let owners = format!(
        "{title}<p>{}{}",
        "X ".repeat(65_000),
        "a Valve company, ".repeat(9_300)
    );
    let articles = format!("{title}<p>{prose}{}", "a ".repeat(120_000));
    // Many names, many headings, and many links.
    let headings = format!("<h2>{}</h2>", "of the tools ".repeat(45)).repeat(200);
    let links = "<a href=x>y</a>".repeat(2_000);
    let letter = |n: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[n % 26]);
    let names: String = (0..17_000)
        .map(|n| format!("x Q{}{}{} ", letter(n / 676), letter(n / 26), letter(n)))
        .collect();
    let products = format!("{title}{headings}{links}<p>{prose}</p><p>{names}{names}");
    let rivals = format!("<title>Packrat vs Rival</title>{headings}{links}<p>{names}{names}");
    // Compounds whose parts are stop words.
    let compounds = format!("{title}<p>{prose}{}", "a-a ".repeat(60_000));
    // Many spellings of own names.
    let own: Vec<String> = (0..50)
        .map(|n| format!(r#"{{"@type":"Organization","name":"Foo Barb{n}"}}"#))
        .collect();
    let own = format!(
        "{title}<script type='application/ld+json'>[{}]</script><p>{prose}{}",
        own.join(","),
        "x ".repeat(120_000)
    );
    let japanese = format!("{title}<p>{prose}{}", "と違".repeat(40_000));
    for body in [owners, articles, products, rivals, compounds, own, japanese] {
        compiled("https://packrat.example/", &body, Focus::Competitor, &[]);
    }
}
