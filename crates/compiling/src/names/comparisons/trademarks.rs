//! Names in trademark notices.

use matching::text;

use super::form::MAX_NAME_WORDS;
use crate::names::capitals;

/// Returns the names in `A, B and C are trademarks of their respective owners`.
pub(super) fn of_trademarks(line: &str) -> Vec<String> {
    const NOTICES: [(&str, &[&str]); 6] = [
        ("trademark", &["owner", "holder"]),
        ("trade mark", &["owner", "holder"]),
        ("marken", &["inhaber", "eigentumer"]),
        ("marcas", &["propietarios", "titulares", "proprietarios"]),
        ("marques", &["proprietaires", "detenteurs"]),
        ("商標", &["各社", "それぞれ"]),
    ];
    const VERBS: [&str; 7] = [" are ", " is ", " sind ", " son ", " sont ", " são ", "は"];
    let mut names = Vec::new();
    for sentence in line.split_inclusive(['.', '。', '!', '|']) {
        let folded = text::fold(sentence);
        let is_notice = NOTICES.iter().any(|(mark, owners)| {
            folded.contains(mark) && owners.iter().any(|owner| folded.contains(owner))
        });
        let end = VERBS.iter().filter_map(|verb| sentence.find(verb)).min();
        let Some(list) = end.filter(|_| is_notice).map(|end| &sentence[..end]) else {
            continue;
        };
        let list = [
            " and ",
            " or ",
            " & ",
            " und ",
            " y ",
            " e ",
            " et ",
            "、",
            "・",
            "および",
        ]
        .iter()
        .fold(list.to_owned(), |list, and| list.replace(and, ","));
        for name in list.split(',') {
            let words: Vec<&str> = name.split_whitespace().collect();
            let capitals = words.iter().all(|word| capitals::is_capitalised(word));
            if (1..=MAX_NAME_WORDS).contains(&words.len()) && capitals {
                names.extend(capitals::checked(&words));
            }
        }
    }
    names
}
