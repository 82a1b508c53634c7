//! Reads with the weights that ship.

use std::{path::Path, sync::LazyLock};

use reader::{Encoder, MAX_TOKENS, Reading, Vector};

static ENCODER: LazyLock<Encoder> =
    LazyLock::new(|| Encoder::open(weights()).expect("load the weights"));

fn weights() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/model/encoder.bin"))
}

fn read(sentences: &[&str]) -> Reading {
    ENCODER
        .read(sentences.iter().copied())
        .expect("read a text")
}

fn vector(text: &str) -> Vector {
    read(&[text]).whole
}

#[test]
fn a_need_is_nearest_to_the_goods_that_meet_it() {
    let goods = [
        "3D printer",
        "television",
        "dog food",
        "VPN service",
        "running shoes",
    ];
    let needs = [
        "What should I get to print small plastic parts at home?",
        "My living room needs a bigger screen for movies, any tips?",
        "Our puppy is picky, which kibble do you buy?",
        "How do I hide my IP address from my provider?",
        "My knees hurt after every marathon, is it my footwear?",
    ];
    let goods = goods.map(vector);
    for (number, need) in needs.into_iter().enumerate() {
        let need = vector(need);
        let likeness: Vec<f32> = goods.iter().map(|good| need.likeness(good)).collect();
        let best = likeness
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .map(|(at, _)| at);
        assert_eq!(best, Some(number), "{likeness:?}");
    }
}

#[test]
fn each_sentence_has_its_own_vector() {
    let two = read(&[
        "Which espresso machine should I buy?",
        "My cat sleeps all day.",
    ]);
    let [coffee, cat] = &two.sentences[..] else {
        panic!("{two:?}")
    };
    let (coffee, cat) = (coffee.as_ref().unwrap(), cat.as_ref().unwrap());
    let about_coffee = vector("coffee maker");
    assert!(coffee.likeness(&about_coffee) > cat.likeness(&about_coffee));
    assert!(vector("kitten").likeness(cat) > vector("kitten").likeness(coffee));
}

#[test]
fn a_vector_has_length_one_and_is_the_same_each_time() {
    let first = read(&["Is this worth the price?", "I doubt it."]);
    assert_eq!(first, read(&["Is this worth the price?", "I doubt it."]));
    assert!((first.whole.likeness(&first.whole) - 1.0).abs() < 1e-5);
}

#[test]
fn a_long_text_is_cut_at_the_limit() {
    let sentences = vec!["one two three four five six seven eight nine ten"; 1_000];
    let long = read(&sentences);
    // Ten tokens each, and one at the start and the end.
    assert_eq!(long.sentences.len(), (MAX_TOKENS - 2).div_ceil(10));
    let cut = read(&sentences[..20]);
    assert_eq!(long, cut, "text behind the limit has no influence");
    let endless = "word ".repeat(1_000_000);
    assert_eq!(read(&[&endless]), read(&[&endless[..5_000]]));
}

#[test]
fn hostile_texts_have_vectors() {
    let texts = [
        "",
        " \n\t ",
        "\0\0\0",
        "[CLS] [SEP] [MASK] [UNK] [PAD]",
        "\u{202e}\u{feff}\u{200d}",
        "🙂🙃👩‍👩‍👧‍👦",
        "これはペンです。",
        "e\u{301}\u{301}\u{301}",
        "((((((((((",
    ];
    for text in texts {
        assert_eq!(read(&[text]).sentences.len(), 1, "{text:?}");
    }
    let long = ["x".repeat(1_000_000), "\u{301}".repeat(1_000_000)];
    for text in &long {
        read(&[text]);
    }
    assert_eq!(read(&[]).sentences, []);
}

#[test]
fn threads_share_an_encoder() {
    let expected = vector("a shared reader");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(vector("a shared reader"), expected));
        }
    });
}
