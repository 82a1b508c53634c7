use domain::{
    Id, Post, PostType, Subforum, Timestamp, User,
    screen::{Language, Mute, MuteType},
};

use super::{Candidate, Kept, Screen, code, host, is_english, language_of};
use crate::{PostText, steps};

fn post(title: &str, text: &str) -> Post {
    Post {
        post_type: PostType::ForumLink,
        time: Timestamp::UNIX_EPOCH,
        id: "forum:1".to_owned(),
        title: Some(title.to_owned()),
        text: Some(text.to_owned()),
        url: "https://Blog.Example.com:8443/a?b".to_owned(),
        subforum: Some(Subforum {
            id: "t5_x".to_owned(),
            name: "r/Rust".to_owned(),
            url: "https://forum.example/r/rust".to_owned(),
        }),
        user: User {
            id: "u1".to_owned(),
            name: "Pat".to_owned(),
            url: "https://forum.example/u/pat".to_owned(),
        },
    }
}

fn mute(mute_type: MuteType, value: &str) -> Mute {
    Mute {
        mute_type,
        value: value.to_owned(),
        expire_time: None,
    }
}

fn keeps_out(post: &Post, mutes: &[Mute], languages: &[&str], now: Timestamp) -> Option<Kept> {
    let languages: Vec<Language> = languages.iter().map(|code| code.parse().unwrap()).collect();
    let text = PostText::from(post);
    Screen::new(mutes, &languages)?.keeps_out(&Candidate::new(post, &text), now)
}

fn mutes(mute_type: MuteType, value: &str) -> bool {
    let post = post(
        "A kettle that listens",
        "We are hiring in Berlin, wi-fi and all.",
    );
    let kept = keeps_out(&post, &[mute(mute_type, value)], &[], Timestamp::UNIX_EPOCH);
    kept == Some(Kept::Muted)
}

#[test]
fn each_kind_of_mute_excludes_only_its_posts() {
    use MuteType::{Author, Site, Subforum, Term};
    for (kind, value) in [
        (Author, "pat"),
        (Author, "@PAT"),
        (Author, "u/pat"),
        (Author, "u1"),
        (Author, "https://forum.example/u/pat"),
        (Subforum, "rust"),
        (Subforum, "/r/rust"),
        (Subforum, "t5_X"),
        (Site, "example.com"),
        (Site, "blog.example.com"),
        (Term, "hiring"),
        (Term, "KETTLE that"),
        (Term, "wifi"),
    ] {
        assert!(mutes(kind, value), "{kind:?} {value}");
    }
    for (kind, value) in [
        (Author, "patricia"),
        (Author, "pa"),
        (Author, "rust"),
        (Subforum, "rusty"),
        (Subforum, "pat"),
        (Site, "ample.com"),
        (Site, "forum.example"),
        (Site, "a.blog.example.com"),
        (Term, "hire"),
        (Term, "kettle listens"),
        (Term, "pat"),
    ] {
        assert!(!mutes(kind, value), "{kind:?} {value}");
    }
}

#[test]
fn an_expired_mute_has_no_effect_at_once() {
    let end: Timestamp = "2026-11-21T01:00:00Z".parse().unwrap();
    let mut pat = mute(MuteType::Author, "pat");
    pat.expire_time = Some(end);
    let before = end.minus(std::time::Duration::from_micros(1));
    let (post, pat) = (post("A kettle", ""), [pat]);
    assert_eq!(keeps_out(&post, &pat, &[], before), Some(Kept::Muted));
    assert_eq!(keeps_out(&post, &pat, &[], end), None);
}

#[test]
fn post_language_is_detected_if_possible() {
    let posts = [
        (
            "en",
            "Which backup software would you recommend for a small team with eight laptops and a server?",
        ),
        (
            "de",
            "Welche Datensicherung könnt ihr für ein kleines Team mit acht Rechnern und einem Server empfehlen?",
        ),
        (
            "ja",
            "小さなチーム向けのバックアップソフトを探しています。おすすめはありますか。",
        ),
        (
            "ar",
            "ما هو برنامج النسخ الاحتياطي الذي تنصحون به لفريق صغير لديه ثمانية أجهزة وخادم واحد؟",
        ),
    ];
    for (language, text) in posts {
        for (wanted, _) in posts {
            let kept = keeps_out(&post("", text), &[], &[wanted], Timestamp::UNIX_EPOCH);
            let expected = (wanted != language).then_some(Kept::Language);
            assert_eq!(kept, expected, "{language} where {wanted} is wanted");
        }
        let kept = keeps_out(
            &post("", text),
            &[],
            &["fr", language],
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(kept, None);
    }
}

#[test]
fn short_posts_and_posts_without_language_pass() {
    for text in [
        "",
        "ok merci",
        "🔥🔥🔥 100%",
        "fn main() { 1 + 1; }",
        "日本",
    ] {
        let kept = keeps_out(&post("", text), &[], &["fi"], Timestamp::UNIX_EPOCH);
        assert_eq!(kept, None, "{text}");
    }
}

#[test]
fn a_post_in_one_of_several_other_languages_is_not_english() {
    for (text, expected) in [
        ("Quem vai ao cinema hoje à noite?", false),
        (
            "Mesalista abre oficina en Bilbao. La inauguración fue el lunes.",
            false,
        ),
        ("Which kettle?", true),
        ("Comcast outage", true),
        ("", true),
    ] {
        let text = PostText::new(None, Some(text));
        assert_eq!(language_of(&text), None, "{text:?}");
        assert_eq!(is_english(&text), expected, "{text:?}");
    }
}

#[test]
fn every_selectable_language_is_detected() {
    let mut told: Vec<&str> = whatlang::Lang::all()
        .iter()
        .map(|lang| code(*lang).unwrap_or_else(|| panic!("{lang:?}")).as_str())
        .collect();
    told.sort_unstable();
    assert_eq!(told, Language::CODES);
}

#[test]
fn hosts_are_found_in_all_addresses_of_a_post() {
    for (url, expected) in [
        ("https://a.example/x", Some("a.example")),
        ("HTTP://user:pass@A.Example.:80", Some("a.example")),
        ("https://a.example\\@b.example/", Some("a.example")),
        ("a.example/x", None),
        ("https:///x", None),
        ("", None),
    ] {
        assert_eq!(host(url).as_deref(), expected, "{url}");
    }
}

#[test]
fn all_mutes_of_a_screen_have_one_budget() {
    let mutes: Vec<Mute> = (0..200)
        .map(|length| mute(MuteType::Term, &("a ".repeat(3 + length % 40) + "b a a")))
        .collect();
    let screen = Screen::new(&mutes, &[]).unwrap();
    let post = post("b", &"a ".repeat(20_000));
    let text = PostText::from(&post);
    let candidate = Candidate::new(&post, &text);
    let (_, taken) = steps::within(u32::MAX, || {
        screen.keeps_out(&candidate, Timestamp::UNIX_EPOCH)
    });
    assert_eq!(taken, steps::IN_INDEX);
}

#[test]
fn mutes_of_a_namespace_are_evaluated_once_for_a_post() {
    let screen = |term| Screen::new(&[mute(MuteType::Term, term)], &[]).unwrap();
    let post = post("b", &"a ".repeat(2_000));
    let text = PostText::from(&post);
    let candidate = Candidate::new(&post, &text);
    let (one, other): (Id, Id) = (Id::NIL, format!("{:0>26}", 1).parse().unwrap());
    let kept = |namespace, screen: &Screen| {
        steps::within(u32::MAX, || {
            candidate.kept_out_of(namespace, screen, Timestamp::UNIX_EPOCH)
        })
    };
    let (absent, present) = (screen("a a a b"), screen("a a a"));
    let (first, taken) = kept(one, &absent);
    assert!(first.is_none() && taken > 0);
    assert_eq!(kept(one, &absent), (None, 0));
    assert_eq!(kept(other, &present).0, Some(Kept::Muted));
    assert_eq!(kept(other, &present), (Some(Kept::Muted), 0));
    assert_eq!(kept(one, &absent), (None, 0));
}
