//! The reader with its files, and without files that can be used.

use std::{fs, path::Path, time::Duration};

use domain::{
    Focus, Instructions, ManagerName,
    instructions::{Sells, Term},
};
use matching::{Plan, PostText};
use reader::Reader;
use runtime::config::PostReader;
use test_support::{TIMEOUT, TestServer};

use crate::{
    judge::{judge, no, yes},
    quarantine::refuse_poison,
    support::{LEMMY, World, metric, post, watching},
};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model");
/// A need for what the customer sells.
const OWN: &str = "Which espresso machine should I buy for my kitchen?";
/// A need for something else, with the customer's words.
const OTHER: &str = "Which monitor should I buy? It stands next to the espresso in my kitchen.";

fn settings() -> PostReader {
    PostReader {
        folder: MODEL.to_owned(),
        // A busy machine may need longer than usual.
        max_wait: TIMEOUT,
        max_per_manager_per_day: 1_000,
    }
}

/// Instructions whose threshold lies between what the reader says of [`OWN`] and of [`OTHER`].
fn selling(offers: &[&str]) -> Instructions {
    let sells = Sells {
        summary: "Bean & Steel makes espresso machines and coffee grinders.".to_owned(),
        offers: offers.iter().map(|offer| (*offer).to_owned()).collect(),
    };
    let mut instructions = Instructions {
        focus: Some(Focus::Sales),
        threshold: Some(0.3),
        sells: sells.or_none(),
        ..watching("espresso", &[LEMMY])
    };
    for text in ["kitchen", "grinder", "portafilter", "barista", "crema"] {
        let text = text.to_owned();
        instructions.include.push(Term { text, weight: 1.0 });
    }
    instructions
}

async fn manager(world: &World, instructions: &Instructions) -> ManagerName {
    let mut conn = world.database.connect().await;
    let fixture = &world.fixture;
    fixture.applied_manager(&mut conn, instructions, &[]).await
}

/// Returns titles and outcomes of a Manager's Scans, once both posts were polled.
async fn decided(world: &World, name: ManagerName, posts: &[&str]) -> Vec<String> {
    let witness = world.manager("kitchen", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    for post in posts {
        world.publish("lemmy", post);
    }
    world.until_scanned(witness, posts.len()).await;
    replica.stop().await;
    let from = format!(
        "scans AS s JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
         WHERE s.manager_id = '{}' ORDER BY p.title DESC",
        name.manager.to_uuid()
    );
    let what = "concat_ws(' ', p.title, s.matched ->> 'reader', s.matched ->> 'judged')";
    world.database.texts(what, &from).await
}

#[tokio::test]
async fn a_need_for_another_good_is_no_scan() {
    for is_read in [true, false] {
        let mut world = World::new().await;
        world.config.scanner.reader = is_read.then(settings);
        let name = manager(&world, &selling(&["espresso machine", "coffee grinder"])).await;
        let found = decided(&world, name, &[OWN, OTHER]).await;
        if is_read {
            assert_eq!(found, [format!("{OWN} JUDGED")]);
        } else {
            assert_eq!(found, [OTHER, OWN]);
        }
    }
}

/// Returns the scores of a post by words and by the reader.
fn scores(instructions: &Instructions, title: &str) -> (f64, f64) {
    let plan = Plan::compile(instructions).unwrap();
    let text = PostText::new(Some(title), None);
    let reader = Reader::in_folder(Path::new(MODEL)).unwrap();
    let sells = instructions.sells.as_ref();
    let customer = reader.customer_of(Focus::Sales, sells, &instructions.names);
    let post = reader.post(title, "").unwrap();
    let score = reader.score(&plan, &text, &post, &customer.unwrap());
    let by_words = matching::evaluate(&plan, &text, None).score;
    (by_words, score.unwrap())
}

#[tokio::test]
async fn a_need_in_few_words_of_the_customer_is_added() {
    let instructions = selling(&["espresso machine", "coffee grinder"]);
    let titles = [
        OWN,
        "Which coffee grinder for espresso should I buy for my kitchen?",
        "Looking for a quiet grinder for our kitchen, any recommendations?",
        "Best espresso machine for a beginner's kitchen?",
    ];
    let mut found = titles
        .iter()
        .map(|title| (title, scores(&instructions, title)));
    let is_added = |(_, (words, read)): &(_, (f64, f64))| *words >= 0.1 && *read > *words + 0.02;
    let (title, (words, read)) = found.find(is_added).unwrap();
    let instructions = Instructions {
        threshold: Some((words + read) / 2.0),
        ..instructions
    };
    for is_read in [true, false] {
        let mut world = World::new().await;
        world.config.scanner.reader = is_read.then(settings);
        let name = manager(&world, &instructions).await;
        let found = decided(&world, name, &[title]).await;
        let expected = is_read.then(|| format!("{title} JUDGED"));
        assert_eq!(found, Vec::from_iter(expected));
    }
}

#[tokio::test]
async fn the_llm_filter_decides_after_the_reader() {
    for is_relevant in [true, false] {
        let endpoint = TestServer::start(move |_, _| if is_relevant { yes() } else { no() }).await;
        let mut world = World::new().await;
        world.config.scanner.reader = Some(settings());
        world.config.scanner.judge = Some(judge(&endpoint));
        let name = manager(&world, &selling(&["espresso machine", "coffee grinder"])).await;
        let found = decided(&world, name, &[OWN]).await;
        if is_relevant {
            assert_eq!(found, [format!("{OWN} JUDGED true")]);
        } else {
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

#[tokio::test]
async fn posts_that_cannot_be_read_keep_their_score() {
    let own = "espresso machine";
    let cases = [
        (vec![], OWN, "NO_OFFERS"),
        (
            vec![own],
            "Welche Espressomaschine soll ich mir für die kleine Küche kaufen? Ich suche eine gute espresso kitchen",
            "OTHER_LANGUAGE",
        ),
    ];
    for (offers, title, outcome) in cases {
        let mut world = World::new().await;
        world.config.scanner.reader = Some(settings());
        let instructions = Instructions {
            threshold: Some(0.0),
            ..selling(&offers)
        };
        let name = manager(&world, &instructions).await;
        let found = decided(&world, name, &[title]).await;
        assert_eq!(found, [format!("{title} {outcome}")]);
    }
}

#[tokio::test]
async fn a_scanner_without_usable_files_scans() {
    let [empty, damaged, newer] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    for file in ["encoder.bin", "head.bin"] {
        let bytes = fs::read(Path::new(MODEL).join(file)).unwrap();
        // The version `1`, which becomes `2`, is after seven letters.
        for (folder, at) in [(&damaged, bytes.len() - 1), (&newer, 7)] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 3;
            fs::write(folder.path().join(file), bytes).unwrap();
        }
    }
    for folder in [&empty, &damaged, &newer] {
        let mut world = World::new().await;
        world.config.scanner.reader = Some(PostReader {
            folder: folder.path().to_str().unwrap().to_owned(),
            ..settings()
        });
        let name = manager(&world, &selling(&["espresso machine"])).await;
        let found = decided(&world, name, &[OWN]).await;
        assert_eq!(found, [format!("{OWN} UNAVAILABLE")]);
    }
}

#[tokio::test]
async fn posts_beyond_the_budget_keep_their_score() {
    let mut world = World::new().await;
    world.config.scanner.reader = Some(PostReader {
        max_per_manager_per_day: 1,
        ..settings()
    });
    let name = manager(&world, &selling(&["espresso machine"])).await;
    let posts = [1, 2, 3, 4].map(|nth| format!("{OWN} {nth}"));
    let found = decided(&world, name, &posts.each_ref().map(String::as_str)).await;
    assert_eq!(found.len(), posts.len());
    let judged = found.iter().filter(|one| one.ends_with("JUDGED")).count();
    let spent = found.iter().filter(|one| one.ends_with("OVER_BUDGET"));
    assert_eq!(judged, 1, "{found:?}");
    assert_eq!(judged + spent.count(), posts.len(), "{found:?}");
}

#[tokio::test]
async fn posts_whose_time_is_over_keep_their_score() {
    let mut world = World::new().await;
    world.config.scanner.reader = Some(PostReader {
        max_wait: Duration::ZERO,
        ..settings()
    });
    let name = manager(&world, &selling(&["espresso machine"])).await;
    let found = decided(&world, name, &[OWN]).await;
    assert_eq!(found, [format!("{OWN} BUSY")]);
}

#[tokio::test]
async fn what_a_customer_sells_is_read_again_after_a_change() {
    let mut world = World::new().await;
    world.config.scanner.reader = Some(settings());
    let name = manager(&world, &selling(&["espresso machine", "coffee grinder"])).await;
    let witness = world.manager("kitchen", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", OTHER);
    world.until_scanned(witness, 1).await;
    assert!(world.scanned(name).await.is_empty());
    let changed = selling(&["computer monitor", "display"]);
    world.replace(name, &changed).await;
    let again = format!("{OTHER} Really?");
    world.publish("lemmy", &again);
    world.until(name, &again).await;
    replica.stop().await;
}

/// The transaction holds the feed's lock, and each half of the posts is tried.
#[tokio::test]
async fn posts_next_to_a_refused_one_are_read_once() {
    let mut world = World::new().await;
    world.config.scanner.reader = Some(settings());
    refuse_poison(&world, true).await;
    let instructions = Instructions {
        threshold: Some(0.0),
        ..selling(&["espresso machine"])
    };
    let name = manager(&world, &instructions).await;
    let posts = (0..8).map(|nth| match nth {
        3 => post("lemmy", &format!("{OWN} Mine is full of poison.")),
        _ => post("lemmy", &format!("{OWN} {nth}")),
    });
    world.platforms.publish(posts.collect());
    let replica = world.ready_scanner().await;
    world.until_scanned(name, 7).await;
    replica.stop().await;
    assert!(metric("earshot_reader_duration_seconds_count 8"));
    assert!(metric("earshot_reader_matches_total{outcome=\"judged\"} 8"));
}
