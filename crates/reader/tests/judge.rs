//! Judges with the files that ship.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use domain::{
    Focus,
    instructions::{NameKind, Sells, WatchedName},
    scan::ReaderOutcome,
};
use matching::EVIDENCE;
use reader::{Customer, Problem, ReadError, Reader};
use serde::Deserialize;
use sha2::{Digest, Sha256};

static READER: LazyLock<Reader> = LazyLock::new(|| {
    Reader::open(&model("encoder.bin"), &model("head.bin"), EVIDENCE).expect("load the files")
});
const NO_NAMES: [&str; 0] = [];
/// Processors add fractions in another order, and numbers are rounded: the recorded ones may differ a little.
const TOLERANCE: f64 = 0.02;
const TOLERANCE_OF_LOGIT: f64 = 0.1;

fn model(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("model")
        .join(file)
}

/// What `tools/relevance-reader/record.py` found in Python.
#[derive(Deserialize)]
struct Recorded {
    posts: Vec<RecordedPost>,
    customers: Vec<RecordedCustomer>,
    pairs: Vec<Pair>,
}

#[derive(Deserialize)]
struct RecordedPost {
    title: String,
    text: String,
}

#[derive(Deserialize)]
struct RecordedCustomer {
    focus: Focus,
    brief: String,
    offers: Vec<String>,
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Pair {
    customer: usize,
    post: usize,
    evidence: Vec<f64>,
    likeness: Vec<f64>,
    logit: f64,
}

#[test]
fn a_customer_in_another_language_is_not_compared() {
    let customer = |summary: &str, offers: &[&str]| {
        let sells = Sells {
            summary: summary.to_owned(),
            offers: offers.iter().map(|offer| (*offer).to_owned()).collect(),
        };
        READER.customer_of(Focus::Sales, Some(&sells), &[])
    };
    let german = [
        "Espressomaschinen für zu Hause",
        "Kaffeemühlen und Zubehör für die Küche",
    ];
    let summary = "Wir bauen Maschinen für den Haushalt und liefern sie in ganz Deutschland.";
    let error = customer(summary, &german).unwrap_err();
    assert_eq!(error.outcome(), ReaderOutcome::OtherLanguage);
    let none = customer("We sell espresso machines for the kitchen at home.", &[]);
    assert_eq!(none.unwrap_err().outcome(), ReaderOutcome::NoOffers);
    for (summary, offers) in [
        ("", ["espresso machine", "coffee grinder"]),
        (
            "We build espresso machines for small kitchens.",
            ["espresso machine", "portafilter"],
        ),
    ] {
        assert!(customer(summary, &offers).is_ok(), "{offers:?}");
    }
}

#[test]
fn a_customer_has_the_names_that_its_focus_asks_about() {
    let name = |text: &str, kind, alias: &str| WatchedName {
        text: text.to_owned(),
        kind,
        aliases: vec![alias.to_owned()],
        case_sensitive: false,
        context: Vec::new(),
        on_topic_percent: None,
        ordinary_posts: None,
    };
    let names = [
        name("Acme", NameKind::Own, "Acme Parcels"),
        name("Bolt", NameKind::Watched, "Bolt Express"),
    ];
    let sells = Sells {
        summary: "We deliver parcels.".to_owned(),
        offers: vec!["parcel delivery".to_owned()],
    };
    let text = "Acme Parcels lost the kettle. Bolt Express delivers every day. It rains in Leith.";
    let post = READER.post("Which service delivers?", text).unwrap();
    let evidence = vec![0.0; EVIDENCE.len()];
    for (focus, asked, others) in [
        (
            Focus::Crisis,
            ["Acme", "Acme Parcels"],
            ["Bolt", "Bolt Express"],
        ),
        (
            Focus::Competitor,
            ["Bolt", "Bolt Express"],
            ["Acme", "Acme Parcels"],
        ),
    ] {
        let judge = |customer: &Customer| READER.judge(focus, &evidence, &post, customer);
        let found = READER.customer_of(focus, Some(&sells), &names).unwrap();
        let named = |names: &[&str]| {
            let customer = READER.customer(&sells.summary, &sells.offers, names);
            judge(&customer.unwrap())
        };
        assert_eq!(judge(&found), named(&asked));
        assert_ne!(judge(&found), named(&others));
    }
}

#[test]
fn judgements_equal_those_of_the_training() {
    let recorded: Recorded = serde_json::from_str(include_str!("pairs.json")).unwrap();
    let posts: Vec<_> = recorded
        .posts
        .iter()
        .map(|post| READER.post(&post.title, &post.text).unwrap())
        .collect();
    let customers: Vec<_> = recorded
        .customers
        .iter()
        .map(|one| {
            READER
                .customer(&one.brief, &one.offers, &one.names)
                .unwrap()
        })
        .collect();
    assert_eq!(recorded.pairs.len(), posts.len() * customers.len());
    for pair in &recorded.pairs {
        let name = format!("customer {}, post {}", pair.customer, pair.post);
        let (post, customer) = (&posts[pair.post], &customers[pair.customer]);
        let likeness = post.likeness(customer);
        assert_eq!(likeness.len(), pair.likeness.len());
        for (at, (found, wanted)) in likeness.iter().zip(&pair.likeness).enumerate() {
            let difference = (f64::from(*found) - wanted).abs();
            assert!(
                difference < TOLERANCE,
                "{name}, number {at}: {found}, not {wanted}"
            );
        }
        let focus = recorded.customers[pair.customer].focus;
        let probability = READER.judge(focus, &pair.evidence, post, customer);
        let logit = (probability / (1.0 - probability)).ln();
        assert!(
            (logit - pair.logit).abs() < TOLERANCE_OF_LOGIT,
            "{name}: {logit}, not {}",
            pair.logit
        );
    }
}

#[test]
fn a_need_for_another_good_is_less_likely_to_be_kept() {
    let customer = READER
        .customer(
            "Bean & Steel",
            &["espresso machine", "coffee grinder"],
            &NO_NAMES,
        )
        .unwrap();
    let probability = |title: &str| {
        let post = READER.post(title, "I have 300 to spend.").unwrap();
        READER.judge(Focus::Sales, &[0.0; EVIDENCE.len()], &post, &customer)
    };
    let own = probability("Which espresso maker should I buy?");
    for other in [
        "Which kettle should I buy?",
        "Which fridge should I buy?",
        "Which monitor should I buy?",
    ] {
        assert!(own > 2.0 * probability(other), "{other}");
    }
}

#[test]
fn hostile_posts_are_judged() {
    let customer = READER.customer("", &[""], &["", "\0", "İ"]).unwrap();
    let long = ["[](".repeat(100_000), "İ\u{301}?".repeat(100_000)];
    let texts = ["", "\0\n", "((((", &long[0], &long[1]];
    for text in texts {
        let post = READER.post(text, text).unwrap();
        for focus in Focus::ALL {
            let probability = READER.judge(focus, &[0.0; EVIDENCE.len()], &post, &customer);
            assert!((0.0..=1.0).contains(&probability), "{probability}");
        }
    }
}

#[test]
fn a_customer_needs_an_offer() {
    let refused = READER.customer("Bean & Steel", &NO_NAMES, &NO_NAMES);
    assert!(matches!(refused, Err(ReadError::NoOffers)));
    let many: Vec<_> = (0..1_000).map(|number| format!("offer {number}")).collect();
    let first =
        |count: usize| -> Customer { READER.customer("", &many[..count], &NO_NAMES).unwrap() };
    let post = READER.post("offer 7", "").unwrap();
    assert_eq!(post.likeness(&first(1_000)), post.likeness(&first(60)));
}

/// Returns the problem of a head file in which the parts were changed.
fn problem(change: impl FnOnce(&mut [Vec<u8>; 4])) -> Problem {
    let bytes = fs::read(model("head.bin")).expect("read the layer");
    let mut rest = &bytes[40..];
    let mut parts = std::array::from_fn(|_| {
        let (length, behind) = rest.split_first_chunk().expect("a length");
        let (part, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        rest = behind;
        part.to_vec()
    });
    change(&mut parts);
    let body: Vec<u8> = parts
        .iter()
        .flat_map(|part| {
            let length = u32::try_from(part.len()).expect("a short part");
            [&length.to_le_bytes(), &part[..]].concat()
        })
        .collect();
    let checksum = Sha256::digest(&body).to_vec();
    opened(&[&b"earhead1"[..], &checksum, &body].concat(), EVIDENCE)
        .expect_err("a changed layer is refused")
}

fn opened(head: &[u8], evidence: &[&str]) -> Result<(), Problem> {
    let folder = tempfile::tempdir().expect("create a folder");
    let path = folder.path().join("head.bin");
    fs::write(&path, head).expect("write the layer");
    let opened = Reader::open(&model("encoder.bin"), &path, evidence);
    opened.map(drop).map_err(|error| error.problem)
}

#[test]
fn a_missing_or_damaged_layer_is_refused() {
    let missing = Reader::open(&model("encoder.bin"), Path::new("/none/head.bin"), EVIDENCE);
    let error = missing.err().unwrap().to_string();
    assert!(error.contains("`/none/head.bin` cannot be read"), "{error}");
    let swapped = Reader::open(&model("encoder.bin"), &model("encoder.bin"), EVIDENCE);
    let error = swapped.err().unwrap().to_string();
    assert!(error.contains("does not start with `earhead`"), "{error}");
    let mut bytes = fs::read(model("head.bin")).unwrap();
    bytes.pop();
    assert!(matches!(opened(&bytes, EVIDENCE), Err(Problem::Damaged)));
}

#[test]
fn a_layer_for_another_encoder_is_refused() {
    let other = problem(|[encoder, ..]| *encoder = b"000000000000".to_vec());
    assert!(
        matches!(&other, Problem::OtherEncoder { expected, .. } if expected == "000000000000"),
        "{other}"
    );
}

#[test]
fn a_layer_for_other_evidence_is_refused() {
    let head = fs::read(model("head.bin")).unwrap();
    let mut swapped = EVIDENCE.to_vec();
    swapped.swap(3, 4);
    let fewer = &EVIDENCE[..EVIDENCE.len() - 1];
    let more = [EVIDENCE, &["new"]].concat();
    for (evidence, at) in [
        (&swapped[..], 3),
        (fewer, EVIDENCE.len() - 1),
        (&more, EVIDENCE.len()),
    ] {
        let refused = opened(&head, evidence).unwrap_err();
        assert!(
            matches!(refused, Problem::OtherEvidence(found) if found == at),
            "{refused}"
        );
    }
}

#[test]
fn a_layer_with_wrong_numbers_is_refused() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change); 5] = [
        ("multiple of four", |numbers| numbers.truncate(4_001)),
        ("too few", |numbers| numbers.truncate(4_000)),
        ("incomplete", |numbers| numbers.truncate(numbers.len() - 4)),
        ("incomplete", |numbers| {
            numbers.truncate(numbers.len() - 4 * 384)
        }),
        ("not finite", |numbers| {
            numbers[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }),
    ];
    for (expected, change) in cases {
        let refused = problem(|[_, _, _, numbers]| change(numbers)).to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let refused = problem(|[_, _, forms, _]| forms.extend(b"\nA third {}?")).to_string();
    assert!(refused.contains("incomplete"), "{refused}");
    let refused = problem(|[_, names, ..]| *names = vec![0xff]).to_string();
    assert!(refused.contains("evidence"), "{refused}");
}
