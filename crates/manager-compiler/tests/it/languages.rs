//! Pages and posts in other languages than English.

use domain::{Focus, Sensitivity};
use manager_compiler::compile::{FetchedPage, compile};
use matching::{Plan, PostText};

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
