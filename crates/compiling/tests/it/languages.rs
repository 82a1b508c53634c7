//! Pages and posts in other languages than English.

use std::{path::Path, sync::LazyLock};

use compiling::compile::{FetchedPage, compile};
use domain::{Focus, Instructions, Sensitivity, instructions::NameKind};
use matching::{Plan, PostText, Reason};
use reader::{Customer, Reader, is_candidate, obstacle};

fn matching<'a>(html: &str, focus: Focus, posts: &[&'a str]) -> Vec<&'a str> {
    let page = FetchedPage {
        url: "https://kaffeewerk.example/".parse().unwrap(),
        content_type: Some("text/html; charset=utf-8".to_owned()),
        body: html.as_bytes().to_vec(),
    };
    let instructions = compile(&[page], focus, Sensitivity::Balanced, &[], "FORUM", &[]).unwrap();
    let plan = Plan::compile(&instructions).unwrap();
    let value =
        |post: &&&str| matching::evaluate(&plan, &PostText::new(None, Some(post)), None).value;
    posts.iter().filter(value).copied().collect()
}

#[test]
fn german_posts_find_a_german_page() {
    let html = r#"<html lang="de"><title>Kaffeewerk | Espressomaschinen und Mühlen</title>
        <meta property="og:site_name" content="Kaffeewerk"><h1>Espressomaschinen für zuhause</h1>
        <p>Siebträger mit Dualboiler, Kaffeemühlen mit Kegelmahlwerk, Wasserfilter und Entkalker.</p>
        <h2>Siebträger</h2><p>Siebträger und Kaffeemühlen, von Hand gebaut.</p>"#;
    let right = "Könnt ihr mir einen Siebträger mit Dualboiler empfehlen? Ich suche auch eine Kaffeemühle, Kaffeemühlen sind mir neu.";
    let others = [
        "Heute gab es beim Frühstück einen Espresso und ein Croissant, das war ein schöner Morgen.",
        "Könnt ihr mir ein Buch über Römer empfehlen? Ich suche etwas Leichtes für den Urlaub.",
    ];
    assert_eq!(
        matching(html, Focus::Sales, &[right, others[0], others[1]]),
        [right]
    );
    let trouble =
        "Kaffeewerk: die Maschine ist nach zwei Wochen kaputt, und seit Tagen keine Antwort.";
    let praise =
        "Kaffeewerk hat mir die Maschine gestern gebracht, und wir sind sehr froh mit ihr.";
    assert_eq!(matching(html, Focus::Crisis, &[trouble, praise]), [trouble]);
}

#[test]
fn japanese_posts_find_a_japanese_page() {
    let html = r#"<html lang="ja"><title>珈琲工房 | エスプレッソマシン</title><h1>家庭用エスプレッソマシン</h1>
        <p>家庭用のエスプレッソマシンと電動コーヒーミルを作っています。</p><h2>電動コーヒーミル</h2>"#;
    let right =
        "家庭用エスプレッソマシンのおすすめを教えてください。電動コーヒーミルも探しています。";
    let others = [
        "今日は公園で犬と遊びました。楽しかったです。",
        "ローマの歴史の本のおすすめを教えてください。",
    ];
    assert_eq!(
        matching(html, Focus::Sales, &[right, others[0], others[1]]),
        [right]
    );
}

#[test]
fn arabic_posts_find_an_arabic_page() {
    let html = r#"<html lang="ar"><title>بيت القهوة | آلات الإسبريسو</title><h1>آلات الإسبريسو المنزلية</h1>
        <p>آلات الإسبريسو اليدوية ومطاحن القهوة الكهربائية.</p><h2>مطاحن القهوة</h2>"#;
    let right = "أبحث عن آلات الإسبريسو المنزلية، بماذا تنصحون؟ وهل مطاحن القهوة الكهربائية جيدة؟";
    let others = [
        "ذهبنا اليوم إلى الحديقة مع الأطفال وكان الجو جميلا.",
        "أبحث عن كتاب في التاريخ، بماذا تنصحون؟",
    ];
    assert_eq!(
        matching(html, Focus::Sales, &[right, others[0], others[1]]),
        [right]
    );
}

/// Decisions on the written posts of one language.
#[derive(Debug, Default, Clone, Copy)]
struct Decisions {
    found: usize,
    missed: usize,
    wrong: usize,
    refused: usize,
    /// How many the reader's score decided.
    read: usize,
}

impl Decisions {
    fn right(self) -> usize {
        self.found + self.refused
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decider {
    Words,
    /// The reader decides, as in the scanner.
    Reader,
    /// The reader decides without asking for the language.
    ReaderOfAnyLanguage,
}

static READER: LazyLock<Reader> = LazyLock::new(|| {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model");
    Reader::in_folder(Path::new(model)).expect("load the reader's files")
});

fn customer(instructions: &Instructions, decider: Decider) -> Option<Customer> {
    let (focus, sells) = (instructions.focus?, instructions.sells.as_ref()?);
    match decider {
        Decider::Words => None,
        Decider::Reader => { READER.customer_of(focus, Some(sells), &instructions.names) }.ok(),
        Decider::ReaderOfAnyLanguage => {
            let names = instructions.names.iter();
            let names: Vec<_> = names
                .filter(|name| (name.kind == NameKind::Own) == (focus == Focus::Crisis))
                .flat_map(|name| std::iter::once(&name.text).chain(&name.aliases))
                .collect();
            READER.customer(&sells.summary, &sells.offers, &names).ok()
        }
    }
}

/// Returns the reader's score, if it decides.
fn read(
    plan: &Plan,
    customer: &Customer,
    (title, text): (&str, &str),
    decider: Decider,
) -> Option<f64> {
    let words = PostText::new(Some(title), Some(text));
    let is_readable = match decider {
        Decider::Words => false,
        Decider::Reader => obstacle(title, &words).is_none(),
        Decider::ReaderOfAnyLanguage => !title.is_empty(),
    };
    let post = is_readable.then(|| READER.post(title, text).unwrap())?;
    READER.score(plan, &words, &post, customer)
}

fn decide(language: &str, decider: Decider) -> Vec<(Focus, Decisions)> {
    let folder = format!("{}/tests/it/languages", env!("CARGO_MANIFEST_DIR"));
    let file = |name: &str| std::fs::read_to_string(format!("{folder}/{language}.{name}")).unwrap();
    let page = FetchedPage {
        url: "https://www.example.com/".parse().unwrap(),
        content_type: Some("text/html; charset=utf-8".to_owned()),
        body: file("html").into_bytes(),
    };
    let pages = [page];
    let posts = file("tsv");
    let focused = |focus: Focus| {
        let instructions =
            compile(&pages, focus, Sensitivity::Balanced, &[], "FORUM", &[]).unwrap();
        let plan = Plan::compile(&instructions).unwrap();
        let threshold = plan.threshold().unwrap();
        let customer = customer(&instructions, decider);
        let mut decisions = Decisions::default();
        for line in posts.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [of, expected, title, text] = fields[..] else {
                panic!("{language}: not four fields: {line}");
            };
            if of != focus.as_str() {
                continue;
            }
            let words = PostText::new(Some(title).filter(|title| !title.is_empty()), Some(text));
            let decision = matching::evaluate(&plan, &words, None);
            let is_open = matches!(decision.reason, Reason::Matched | Reason::BelowThreshold);
            let customer = { customer.as_ref() }
                .filter(|_| is_open && is_candidate(decision.score, threshold));
            let score = customer.and_then(|customer| read(&plan, customer, (title, text), decider));
            decisions.read += usize::from(score.is_some());
            let value = score.map_or(decision.value, |score| score >= threshold);
            let counter = match (expected, value) {
                ("yes", true) => &mut decisions.found,
                ("yes", false) => &mut decisions.missed,
                (_, true) => &mut decisions.wrong,
                (_, false) => &mut decisions.refused,
            };
            *counter += 1;
            if (expected == "yes") != value {
                let score = score.unwrap_or(decision.score);
                println!("{language} {of} {decider:?} {expected} {score:.2} {line}");
            }
        }
        (focus, decisions)
    };
    Focus::ALL.into_iter().map(focused).collect()
}

const LANGUAGES: [&str; 6] = ["en", "de", "es", "fr", "pt", "ja"];

/// Returns the sum over the foci, and prints each.
fn all(language: &str, decider: Decider) -> Decisions {
    let mut all = Decisions::default();
    for (focus, each) in decide(language, decider) {
        println!(
            "| {language} | {decider:?} | {} | {each:?} |",
            focus.as_str()
        );
        all.found += each.found;
        all.missed += each.missed;
        all.wrong += each.wrong;
        all.refused += each.refused;
        all.read += each.read;
    }
    println!("| {language} | {decider:?} | {all:?} | {} |", all.right());
    all
}

/// Posts written for this test, by someone who had not seen the lexicons. `-- --nocapture` prints the tables of
/// docs/matching-quality.md and each wrong decision.
#[test]
fn most_decisions_are_right_in_six_languages() {
    for language in LANGUAGES {
        let right = all(language, Decider::Words).right();
        assert!(right >= 32, "{language}: {right} of 40");
    }
}

#[test]
fn the_reader_decides_in_english_alone() {
    for language in LANGUAGES {
        let decisions = all(language, Decider::Reader);
        if language == "en" {
            assert!(
                decisions.read >= 20 && decisions.right() >= 36,
                "{decisions:?}"
            );
        } else {
            assert_eq!(decisions.read, 0, "{language}");
        }
    }
}

#[test]
#[ignore = "only prints a table: what the reader would decide"]
fn the_reader_would_decide_in_any_language() {
    for language in LANGUAGES {
        all(language, Decider::ReaderOfAnyLanguage);
    }
}
