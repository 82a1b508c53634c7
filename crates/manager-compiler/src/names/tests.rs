//! Names on invented pages.

use ::domain::instructions::{NameKind, Term};

use super::Names;
use crate::compile::Page;

fn page(url: &str, html: &str) -> Page {
    Page::read(&url.parse().unwrap(), Some("text/html"), html.as_bytes()).unwrap()
}

fn spellings(names: &Names) -> Vec<Vec<&str>> {
    names
        .own
        .iter()
        .map(|n| n.spellings.iter().map(String::as_str).collect())
        .collect()
}

#[test]
fn own_names_come_from_markup_title_domain_and_handles() {
    let page = page(
        "https://www.brewforge.example/",
        r#"<title>Brew Forge | Lever espresso machines</title><meta property="og:site_name" content="Brew Forge">
        <p>Brew Forge makes espresso machines by hand in Leith.</p>
        <footer><a href="https://twitter.com/brewforge_hq">t</a> <a href="https://twitter.com/intent/tweet">s</a></footer>"#,
    );
    let names = Names::find(&[page], &[]);
    assert_eq!(
        spellings(&names),
        [["Brew Forge", "BrewForge", "@brewforge_hq", "brewforge_hq"]]
    );
}

#[test]
fn rivals_come_from_comparisons_unless_given() {
    let html = r#"<title>Packrat - Backups</title><p>Packrat saves your files.</p>
        <h2>Packrat vs Old Faithful Vault</h2><ul><li><a href="/compare/x">Packrat vs. Stashbox</a></li></ul>
        <p>The best alternative to Hoardly, and cheaper.</p>"#;
    let found = Names::find(&[page("https://packrat.example/", html)], &[]);
    let watched: Vec<_> = found
        .watched
        .iter()
        .map(|n| n.spellings[0].as_str())
        .collect();
    assert_eq!(watched, ["Old Faithful Vault", "Stashbox", "Hoardly"]);
    let given = Names::find(
        &[page("https://packrat.example/", html)],
        &["Acme Vault".to_owned()],
    );
    assert_eq!(given.watched[0].spellings, ["Acme Vault", "AcmeVault"]);
    assert_eq!(given.watched.len(), 1);
}

#[test]
fn names_that_are_words_ask_for_case_and_context() {
    let html = r#"<title>Giant Airlines | Fly</title><p>Giant Airlines flies to many cities.</p>
        <a href="https://twitter.com/giant">@giant</a>"#;
    let names = Names::find(&[page("http://127.0.0.1/", html)], &[]);
    let term = Term {
        text: "flight".to_owned(),
        weight: 1.0,
    };
    let entries = names.entries(&[term]);
    assert_eq!(entries.len(), 2, "{entries:?}");
    assert_eq!(
        (entries[0].text.as_str(), entries[0].case_sensitive),
        ("Giant Airlines", false)
    );
    assert!(entries[0].aliases.contains(&"@giant".to_owned()));
    assert_eq!(
        (entries[1].text.as_str(), entries[1].case_sensitive),
        ("Giant", true)
    );
    assert_eq!(entries[1].context, ["airlines", "flight"]);
    assert!(entries.iter().all(|entry| entry.kind == NameKind::Own));
}
