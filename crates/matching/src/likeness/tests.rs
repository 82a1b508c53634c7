use domain::{Post, PostType, Timestamp, User};
use proptest::prelude::*;

use super::{Likeness, MAX_KEYS, MIN_WORDS, Sketch, link_key};

fn post(title: Option<&str>, text: Option<&str>) -> Post {
    Post {
        post_type: PostType::NetworkPost,
        time: Timestamp::UNIX_EPOCH,
        id: "a:1".to_owned(),
        url: "https://a.example/".to_owned(),
        title: title.map(str::to_owned),
        text: text.map(str::to_owned),
        subforum: None,
        user: User {
            id: "pat".to_owned(),
            name: "pat".to_owned(),
            url: "https://a.example/pat".to_owned(),
        },
    }
}

fn of(text: &str) -> Likeness {
    Likeness::of(&post(None, Some(text)))
}

fn alike(one: &Likeness, other: &Likeness) -> bool {
    let link = one.links.iter().any(|link| other.links.contains(link));
    let met = one.bands.iter().any(|band| other.bands.contains(band));
    let sketches = one.sketch.as_ref().zip(other.sketch.as_ref());
    link || met && sketches.is_some_and(|(one, other)| one.is_like(other))
}

#[test]
fn links_are_compared_in_normal_form() {
    let same = [
        "https://example.com/notes/1",
        "http://www.example.com/notes/1/",
        "https://EXAMPLE.com:443/notes/1?utm_source=x&fbclid=y#top",
    ];
    let keys: Vec<_> = same.iter().map(|link| link_key(link)).collect();
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]));
    for other in [
        "https://example.com/notes/2",
        "https://example.com:8443/notes/1",
        "https://example.com/notes/1?page=2",
        "https://other.example.com/notes/1",
    ] {
        assert_ne!(link_key(other), keys[0], "{other}");
    }
    let sorted = link_key("https://example.com/?a=1&b=2");
    assert_eq!(
        link_key("https://example.com/?b=2&utm_medium=mail&a=1"),
        sorted
    );
    for none in [
        "https://example.com/",
        "https://example.com",
        "ftp://example.com/a",
        "",
        "x",
    ] {
        assert_eq!(link_key(none), None, "{none}");
    }
}

#[test]
fn a_link_in_the_text_counts_and_a_place_of_many_posts_does_not() {
    let linked = of("Look (https://example.com/notes/1).");
    assert!(alike(&linked, &of("see: http://www.example.com/notes/1")));
    assert!(!alike(
        &of("at https://example.com/"),
        &of("by https://example.com/")
    ));
    let mut page = post(None, Some("one"));
    page.url = "https://a.example/feed".to_owned();
    page.user.url = page.url.clone();
    assert_eq!(Likeness::of(&page), Likeness::default());
}

#[test]
fn a_cross_post_is_recognised_across_title_and_text() {
    let forum = post(
        Some("Which espresso machine for a small office?"),
        Some("We are eight people and want one that anybody can clean. Budget is 900 EUR."),
    );
    let microblog = of(
        "Which espresso machine for a small office? We are eight people and want one that anybody can clean! Budget is 900 EUR",
    );
    assert!(alike(&Likeness::of(&forum), &microblog));
    let other = of(
        "Which espresso machine for a small office? My boss asked me, and I know nothing about coffee at all.",
    );
    assert!(!alike(&other, &microblog));
}

#[test]
fn short_texts_are_never_near_duplicates() {
    assert_eq!(of("any news on this?"), Likeness::default());
    assert!(alike(
        &of("Show HN: a tiny kettle in Rust"),
        &of("show hn - A tiny kettle in rust")
    ));
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]{2,9}", 40..120)
}

proptest! {
    #[test]
    fn any_text_has_few_keys_and_a_sketch_that_survives(title in ".{0,80}", text in ".{0,400}") {
        let likeness = Likeness::of(&post(Some(&title), Some(&text)));
        prop_assert!(likeness.keys().count() <= MAX_KEYS);
        prop_assert_eq!(likeness.bands.is_empty(), likeness.sketch.is_none());
        if let Some(sketch) = &likeness.sketch {
            let read = Sketch::from_bytes(&sketch.to_bytes());
            prop_assert_eq!(read.as_ref(), Some(sketch));
            prop_assert!(alike(&likeness, &likeness));
        }
    }

    #[test]
    fn case_space_and_punctuation_do_not_count(words in words(), seed in any::<u32>()) {
        let plain = of(&words.join(" "));
        let points = [" ", ", ", ".\n\n", " - ", "! "];
        let dressed: String = words.iter().enumerate().map(|(at, word)| {
            let word = if (seed >> (at % 32)) & 1 == 0 { word.clone() } else { word.to_uppercase() };
            word + points[(seed as usize + at) % points.len()]
        }).collect();
        prop_assert_eq!(plain, of(&dressed));
    }

    #[test]
    fn other_words_are_another_text(one in words(), other in words()) {
        let common = one.windows(2).filter(|pair| other.windows(2).any(|own| own == *pair)).count();
        prop_assume!(common * 4 < one.len().min(other.len()));
        prop_assert!(!alike(&of(&one.join(" ")), &of(&other.join(" "))));
    }

    #[test]
    fn malformed_sketches_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
        prop_assert_eq!(Sketch::from_bytes(&bytes).is_some(), bytes.len() == 64);
    }
}

/// The sketch is an estimate, so the test counts and does not require that every pair passes.
#[test]
fn nearly_every_text_with_one_word_changed_is_recognised() {
    let (mut seed, mut missed) = (7_u64, 0);
    let mut next = || {
        seed = super::mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        seed
    };
    for _ in 0..1_000 {
        let words: Vec<String> = (0..40).map(|_| format!("w{}", next() % 5_000)).collect();
        let mut changed = words.clone();
        let at = usize::try_from(next() % 40).unwrap();
        changed[at] = "another".to_owned();
        missed += usize::from(!alike(&of(&words.join(" ")), &of(&changed.join(" "))));
    }
    assert!(words_needed() && missed <= 30, "{missed} of 1000 missed");
}

fn words_needed() -> bool {
    of(&"word ".repeat(MIN_WORDS)).sketch.is_some()
        && of(&"word ".repeat(MIN_WORDS - 1)).sketch.is_none()
}
