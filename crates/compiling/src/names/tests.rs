//! Names on invented pages.

use ::domain::instructions::{NameKind, Term};

use super::Names;
use crate::page::Page;

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
fn names_that_are_words_require_case_and_context() {
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

fn own(url: &str, html: &str) -> Vec<String> {
    let names = Names::find(&[page(url, html)], &[]);
    names
        .own
        .iter()
        .map(|named| named.spellings[0].clone())
        .collect()
}

const NOWHERE: &str = "http://192.0.2.1/page";

#[test]
fn a_title_names_the_brand_where_the_page_uses_it_as_a_name() {
    for (title, expected) in [
        ("Packrat - Backups for small offices", &["Packrat"][..]),
        ("Backups for small offices | BelegHeld", &["BelegHeld"]),
        ("Backups | Small Offices", &[]),
    ] {
        let html = format!(
            "<title>{title}</title><p>With Packrat and BelegHeld you keep the files of your small offices."
        );
        assert_eq!(own(NOWHERE, &html), expected, "{title}");
    }
}

#[test]
fn owners_are_names_of_the_customer() {
    let text = "<p>Games for everybody, on every computer that you have.";
    for (html, expected) in [
        ("<title>Kindle by Amazon</title>", &["Kindle", "Amazon"][..]),
        ("<title>Espresso by Night</title>", &[]),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>Steam is a Valve company.",
            &["Steam", "Valve"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>Steam is part of Alphabet.",
            &["Steam", "Alphabet"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>We are owned by the Volvo Group.",
            &["Steam", "Volvo"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>Leith is part of Edinburgh.",
            &["Steam"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>We are a British company.",
            &["Steam"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><p>Sales are part of the job.",
            &["Steam"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><footer><p>© 2003–2026 Valve Corporation. All rights reserved.</footer>",
            &["Steam", "Valve"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><footer><a href=/x>Terms</a> Copyright © 2026 Steam</footer>",
            &["Steam"],
        ),
        (
            "<title>Steam</title><meta property=og:site_name content=Steam><footer>© 2026 Theme by Jane</footer>",
            &["Steam"],
        ),
    ] {
        assert_eq!(own(NOWHERE, &format!("{html}{text}")), expected, "{html}");
    }
}

#[test]
fn products_are_capitalised_in_mid_sentence_and_tied_to_the_customer() {
    let html = r#"<title>Amazonia | Readers</title><meta property="og:site_name" content="Amazonia">
        <p>Read more with the Amazonia Kindle. Books on your Kindle open in London, and your Kindle works with Windows.
        <p>Our plan with U-verse is simple: all who have U-verse on Windows in London may keep it, and Windows stays.
        <p>Shops in London sell it. <a href="/tv/u-verse">See it</a>"#;
    assert_eq!(
        own("https://amazonia.example/", html),
        ["Amazonia", "Kindle", "U-verse"]
    );
}

#[test]
fn customer_is_never_its_own_rival() {
    let html = r#"<title>GitLab | Code</title><meta property="og:site_name" content="GitLab">
        <p>GitLab hosts your code. <h2>GitLab vs Forgeron</h2>"#;
    let page = page("https://gitlab.example/", html);
    let given = ["Git Lab", "gitlab", "Forgeron"].map(str::to_owned);
    let names = Names::find(&[page], &given);
    let watched: Vec<_> = names
        .watched
        .iter()
        .map(|n| n.spellings[0].as_str())
        .collect();
    assert_eq!(watched, ["Forgeron"]);
}

#[test]
fn a_brand_that_a_shop_sells_may_be_a_rival() {
    let html = r#"<title>Velomarsh</title><meta property="og:site_name" content="Velomarsh"><p>Bicycles built by hand in Leith.
        <script type="application/ld+json">{"@type":"Product","name":"Madone","brand":{"@type":"Brand","name":"Trek"}}</script>"#;
    let names = Names::find(
        &[page("https://velomarsh.example/", html)],
        &["Trek".to_owned()],
    );
    let own: Vec<_> = names.own.iter().map(|n| n.spellings[0].as_str()).collect();
    assert_eq!(own, ["Velomarsh", "Madone"]);
    assert_eq!(names.watched[0].spellings[0], "Trek");
}

#[test]
fn unmistakable_names_match_in_any_spelling() {
    let spellings = |name: &str| {
        let entries = super::Named::new(name.to_owned()).entries(NameKind::Own, &[]);
        let clear = entries.iter().filter(|entry| !entry.case_sensitive);
        clear
            .flat_map(|entry| std::iter::once(entry.text.clone()).chain(entry.aliases.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(spellings("GitLab"), ["GitLab", "Git Lab"]);
    // `drop box` is an ordinary phrase.
    assert_eq!(spellings("DropBox"), ["DropBox"]);
    assert_eq!(
        super::Named::new("DropBox".to_owned()).doubtful,
        ["Drop Box"]
    );
    for name in ["iPhone", "McDonald", "LinkedIn"] {
        assert_eq!(spellings(name), [name]);
    }
    // The tokens of `&` are those of `and`.
    let words = |name: &str| {
        matching::text::words(name)
            .map(|word| word.text.into_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(words("Black & Decker"), words("black and decker"));
}

#[test]
fn names_given_in_capitals_need_their_case_but_no_context() {
    let page = page(NOWHERE, "<p>Packrat saves the files of your office.");
    let terms = [Term {
        text: "backup".to_owned(),
        weight: 1.0,
    }];
    for (name, needs_context) in [
        ("AWS", false),
        ("HBO", false),
        ("NAPA", false),
        ("GAP", false),
        ("HP", true),
        ("Gap", true),
        // A stop word in capitals is more often emphasis than a name.
        ("WHO", true),
    ] {
        let names = Names::find(std::slice::from_ref(&page), &[name.to_owned()]);
        let entries = names.entries(&terms);
        let entry = entries.iter().find(|entry| entry.text == name).unwrap();
        assert!(entry.case_sensitive, "{name}");
        assert_eq!(!entry.context.is_empty(), needs_context, "{name}");
    }
}

#[test]
fn parts_of_a_site_and_legal_texts_are_not_own_names() {
    let html = r#"<title>Steam Subscriber Agreement</title><meta property="og:site_name" content="Steam Subscriber Agreement">
        <p>Steam sells games. You may ask Steam for your money. <a href="/">Refunds</a> <a href="/">Gift Cards</a>
        <a href="/">Play Game</a> <a href="/">Wallet</a> <a href="/">Steam</a> <a href="/">Steam Support</a>
        <a href="/">Steam Community</a> <a href="https://twitter.com/steam_support">t</a>"#;
    let names = Names::find(&[page("https://store.steampowered.com/", html)], &[]);
    assert_eq!(
        spellings(&names),
        [
            vec!["Steam", "@steam_support", "steam_support", "Steam Store"],
            vec!["steampowered"]
        ]
    );
    for (site_name, expected) in [
        ("Google Help", &["Google"][..]),
        ("Help Center", &[]),
        ("Comcast Corporation (Nasdaq: CMCSA", &["Comcast"]),
        ("Kids Medical Center", &["Kids Medical Center"]),
        ("Privacy Policy", &[]),
    ] {
        let html = format!(
            r#"<meta property="og:site_name" content="{site_name}"><p>Answers to all that you ask, every day.</p>"#
        );
        assert_eq!(own(NOWHERE, &html), expected, "{site_name}");
    }
}

#[test]
fn a_company_named_after_a_shop_keeps_its_whole_name() {
    let html = r#"<meta property="og:site_name" content="Rubber Stamp Store"><p>Stamps of rubber, made to order.</p>"#;
    assert_eq!(
        own("https://www.rubberstampstore.example/", html),
        ["Rubber Stamp Store"]
    );
}

#[test]
fn the_brand_comes_before_the_owner() {
    let html = r#"<meta property="og:site_name" content="Valve"><p>Steam sells games on every computer.</p>
        <script type="application/ld+json">{"@type":"WebSite","name":"Steam"}</script>"#;
    let names = own("https://store.steampowered.com/", html);
    assert_eq!(names[0], "Steam");
}

#[test]
fn a_name_in_capitals_is_written_as_the_prose_has_it() {
    for (prose, expected) in [
        (
            "Comcast sells cable. At Comcast, we care. COMCAST.",
            "Comcast",
        ),
        ("At COMCAST we sell cable.", "COMCAST"),
    ] {
        let html = format!(r#"<meta property="og:site_name" content="COMCAST"><p>{prose}</p>"#);
        assert_eq!(own(NOWHERE, &html), [expected], "{prose}");
    }
}

#[test]
fn a_product_that_is_a_word_is_a_name_only_behind_the_company() {
    let html = r#"<title>Google</title><meta property="og:site_name" content="Google"><p>All that we make, for all.</p>
        <script type="application/ld+json">[{"@type":"Product","name":"Maps"},{"@type":"Product","name":"Prime"},
        {"@type":"Product","name":"Gift Cards"},{"@type":"Product","name":"Pixelbook"}]</script>"#;
    let names = Names::find(&[page("https://www.google.com/", html)], &[]);
    let own: Vec<_> = names.own.iter().map(|n| n.spellings[0].as_str()).collect();
    assert_eq!(own, ["Google", "Google Maps", "Google Prime", "Pixelbook"]);
    assert!(!spellings(&names).concat().contains(&"Maps"));
}

#[test]
fn products_that_their_owner_links_are_own_names() {
    let body = r#"<p>Sign in to Gmail and write to your friends, or watch films.</p><h2>Gmail for work</h2>
        <p>Send photos with Flickr to your friends.</p><p>Your films go to Flickr too. Download it for Windows. We have offices with a view in London.</p>
        <h2>London</h2><nav><a href="https://mail.google.com/mail">Gmail</a> <a href="/flickr">Flickr</a>
        <a href="/windows">Windows</a> <a href="/cities/london">London</a></nav>"#;
    let html = |name: &str| {
        format!(r#"<title>{name}</title><meta property="og:site_name" content="{name}">{body}"#)
    };
    assert_eq!(
        own("https://about.google.com/", &html("Google")),
        ["Google", "Flickr", "Gmail"]
    );
    // On pages of other companies these are platforms.
    assert!(!own("https://tunnelry.example/", &html("Tunnelry")).contains(&"Gmail".to_owned()));
}

fn watched(pages: &[Page]) -> Vec<String> {
    let names = Names::find(pages, &[]);
    let mut watched: Vec<String> = names
        .watched
        .iter()
        .map(|named| named.spellings[0].clone())
        .collect();
    watched.sort();
    watched
}

fn ledger(path: &str, html: &str) -> Page {
    let html = format!(
        r#"<meta property="og:site_name" content="LedgerLeaf"><p>LedgerLeaf keeps the books of small shops.</p>{html}"#
    );
    page(&format!("https://ledgerleaf.example/{path}"), &html)
}

#[test]
fn rivals_are_found_in_headings_of_comparison_pages() {
    for (path, heading, expected) in [
        ("compare", "LedgerLeaf and QuickBooks", &["QuickBooks"][..]),
        ("", "LedgerLeaf compared with FreshBooks", &["FreshBooks"]),
        ("", "If you come from QuickBooks", &["QuickBooks"]),
        ("", "LedgerLeaf im Vergleich mit sevDesk", &["sevDesk"]),
        (
            "",
            "Comparaison de LedgerLeaf et QuickBooks",
            &["QuickBooks"],
        ),
        ("", "Compare LedgerLeaf plans and PayRoll", &[]),
        ("", "LedgerLeaf and QuickBooks", &[]),
        ("compare", "Moving from Windows", &[]),
    ] {
        let page = ledger(
            path,
            &format!("<h2>{heading}</h2><p>Books that balance.</p>"),
        );
        assert_eq!(watched(&[page]), expected, "{path} {heading}");
    }
}

#[test]
fn rivals_are_found_in_a_table_with_the_own_name() {
    let table = "<table><tr><th>Feature<th>LedgerLeaf<th>QuickBooks<th>Khan Academy<th>Code School
        <tr><td>Invoices<td>Yes<td>Yes<td>No<td>No<tr><td>Price<td>$5<td>$10<td>$12<td>Free</table>
        <p>People who learned with Code School like it.</p>";
    let page = ledger("why", &format!("<h1>How we compare</h1>{table}"));
    assert_eq!(
        watched(&[page]),
        ["Code School", "Khan Academy", "QuickBooks"]
    );
    let page = ledger("features", &format!("<h1>Features</h1>{table}"));
    assert!(watched(&[page]).is_empty());
}

#[test]
fn brand_is_used_without_its_model() {
    let html = r#"<title>Compare shoes</title><meta property="og:site_name" content="Velomarsh"><p>Velomarsh makes shoes.</p>
        <table><tr><th>Shoe<th>Weight<tr><td>Velomarsh Dasher<td>9 oz<tr><td>Nike Pegasus<td>10 oz
        <tr><td>Adidas Ultraboost<td>11 oz</table>"#;
    let page = page("https://velomarsh.example/shoes", html);
    assert_eq!(watched(&[page]), ["Adidas", "Nike"]);
}

#[test]
fn rivals_are_mentioned_in_the_prose_of_comparison_pages() {
    let html = "<h1>Moving over is easy</h1><p>Most of our users had Nike before, and some had FreshBooks.
        The books of Nike and FreshBooks open at once. It all works with Adidas, and Adidas opens too.
        We have an office in Berlin, and all in Berlin like it on Tuesday or Tuesday night. A Report opens;
        the Report is free. Your report is yours. Some have Netflix, and Netflix is ours.</p>
        <a href='/netflix'>Netflix</a>";
    // A block about integrations says nothing about rivals.
    let html = html
        .replace(" It all works", "</p><p>It all works")
        .replace("We have", "</p><p>We have");
    assert_eq!(watched(&[ledger("start", &html)]), ["FreshBooks", "Nike"]);
    let html = html.replace("Moving over is easy", "Start");
    assert!(watched(&[ledger("start", &html)]).is_empty());
}

#[test]
fn links_to_comparisons_name_rivals() {
    let html = r#"<nav><a href="/compare/square">Square</a> <a href="/compare/all">Compare</a> <a href="/help/wave">Wave</a>
        <a href="/freshbooks-alternative">FreshBooks</a></nav>"#;
    assert_eq!(watched(&[ledger("", html)]), ["FreshBooks", "Square"]);
}

#[test]
fn trademark_notices_name_rivals_on_any_page() {
    for (notice, expected) in [
        (
            "QuickBooks, Xero and Khan Academy are trademarks of their respective owners.",
            &["Khan Academy", "QuickBooks", "Xero"][..],
        ),
        (
            "© 2026 LedgerLeaf. QuickBooks and LedgerLeaf are registered trademarks of their owners. All rights reserved.",
            &["QuickBooks"],
        ),
        (
            "Lexware und sevDesk sind Marken ihrer jeweiligen Inhaber.",
            &["Lexware", "sevDesk"],
        ),
        (
            "QuickBooks y Xero son marcas de sus respectivos propietarios.",
            &["QuickBooks", "Xero"],
        ),
        (
            "QuickBooks、Xeroは各社の商標です。",
            &["QuickBooks", "Xero"],
        ),
        (
            "All other trademarks are the property of their respective owners.",
            &[],
        ),
        (
            "iPhone and Android are trademarks of their respective owners.",
            &[],
        ),
    ] {
        let page = ledger("", &format!("<footer><p>{notice}</p></footer>"));
        assert_eq!(watched(&[page]), expected, "{notice}");
    }
}

#[test]
fn rivals_are_limited() {
    let names: Vec<String> = ('a'..='z')
        .map(|c| format!("Book{c}Keep"))
        .map(|n| n.replace("Booka", "BookA"))
        .collect();
    let notice = format!("{} are trademarks of their owners.", names.join(", "));
    let page = ledger("", &format!("<footer><p>{notice}</p></footer>"));
    assert_eq!(watched(&[page]).len(), 15);
}

#[test]
fn people_are_neither_rivals_nor_own_names() {
    let signed = |name: &str| {
        format!(
            r#"<script type="application/ld+json">{{"@type":"Organization","name":"Jane Bunyan"}}</script>
            <script type="application/ld+json">{{"@type":"Product","name":"Jane Bunyan"}}</script>
            <h2>LedgerLeaf vs Jane Bunyan</h2><h2>LedgerLeaf vs QuickBooks</h2>
            <p>“I could not believe how easy it is to keep my books.”</p><p>— {name}, CEO at Packrat</p>"#
        )
    };
    let pages = [ledger("", &signed("Jane Bunyan"))];
    assert_eq!(pages[0].text.people, ["Jane Bunyan"]);
    let names = Names::find(&pages, &[]);
    assert_eq!(names.own.len(), 1, "{:?}", names.own);
    assert_eq!(watched(&pages), ["QuickBooks"]);
    // The same name counts if it is not the author of a quotation.
    let names = Names::find(&[ledger("", &signed("Eve Marsh"))], &[]);
    assert_eq!(names.own.len(), 2, "{:?}", names.own);
}

#[test]
fn products_represent_well_known_names() {
    let html = r#"<title>Nexor</title><meta property="og:site_name" content="Nexor"><p>Telephones without surprises."#;
    let given = ["Apple".to_owned(), "Velomarsh".to_owned()];
    let names = Names::find(&[page("https://nexor.example/", html)], &given);
    let products: Vec<String> = names
        .products(&[])
        .into_iter()
        .map(|name| name.text)
        .collect();
    assert!(products.contains(&"iPhone".to_owned()), "{products:?}");
    // A mention of the product is a mention of Apple.
    assert!(
        !products.contains(&"Apple Watch".to_owned()),
        "{products:?}"
    );
}

#[test]
fn a_contrast_with_the_customer_names_a_rival() {
    for (lang, html, rivals) in [
        (
            "en",
            "<h1>Packrat</h1><p>Unlike Stashbox, Packrat keeps versions. Unlike last year, it is cheap.</p>\
             <h2>Packrat compared with Vaultora and Other Tools</h2>",
            &["Vaultora", "Stashbox"][..],
        ),
        (
            "de",
            "<h1>Packrat</h1><p>Anders als Stashbox läuft Packrat im Browser.</p><h2>Packrat im Vergleich mit Papier</h2>",
            &["Stashbox"],
        ),
        (
            "es",
            "<h1>Packrat</h1><p>A diferencia de Stashbox, Packrat es sencillo.</p>",
            &["Stashbox"],
        ),
        (
            "ja",
            "<h1>Packrat</h1><h2>Packratとスタッシュボックスの比較</h2><p>Hoardlyと違い、Packratは日本語です。</p>",
            &["スタッシュボックス", "Hoardly"],
        ),
        (
            "en",
            "<h1>Packrat</h1><p>Unlike Stashbox, we did it.</p>",
            &[],
        ),
    ] {
        let html = format!(r#"<html lang="{lang}"><title>Packrat</title>{html}</html>"#);
        let found = Names::find(&[page("https://packrat.example/", &html)], &[]);
        let watched: Vec<_> = found
            .watched
            .iter()
            .map(|n| n.spellings[0].as_str())
            .collect();
        assert_eq!(watched, rivals, "{html}");
    }
}
