//! Finds the people on a page: authors of quotes, and staff.
//!
//! A customer's testimonial does not describe the page's subject, and a person's name is not the subject. A person is
//! detected by a signature (`— Jane Doe, CTO at Acme`), or by a name with a role below it (`Jane Doe`, then `Head of
//! Design`). Their blocks are dropped, including the quotation before a signature. Their names are kept so that they do
//! not become terms.

use matching::text;

use super::PageText;

const MAX_PEOPLE: usize = 100;
/// Maximum length of a signature; a longer line is a sentence.
const MAX_SIGNATURE_WORDS: usize = 12;
const MAX_ROLE_WORDS: usize = 8;
const MAX_NAME_WORDS: usize = 3;
const DASHES: [char; 5] = ['—', '–', '―', '-', '~'];
const QUOTES: [char; 11] = ['"', '“', '”', '„', '«', '»', '「', '」', '『', '』', '‟'];
/// Folded words for professions and positions, in all supported page languages.
const ROLES: &str = "ceo cto cfo coo cmo cpo cio ciso founder cofounder owner president director manager
engineer developer designer head lead vp officer consultant analyst administrator sysadmin architect editor
teacher professor coach marketer photographer
geschaftsfuhrer geschaftsfuhrerin grunder grunderin inhaber inhaberin leiter leiterin
directora fundador fundadora gerente jefe jefa propietario propietaria
directeur directrice fondateur fondatrice gerant gerante responsable proprietaire
diretor diretora socio socia proprietario";
/// Roles that only appear as the signature of a quotation.
const CUSTOMERS: &str = "customer client buyer user admin partner kunde kundin cliente";
const ROLES_IN_JAPANESE: [&str; 6] = ["代表", "社長", "部長", "店長", "担当者", "様"];

/// Drops testimonials and staff from the blocks and headings, and records the names.
pub(super) fn drop_people(page: &mut PageText) {
    let mut dropped = vec![false; page.blocks.len()];
    let mut headings_dropped = vec![false; page.headings.len()];
    let mut people: Vec<String> = Vec::new();
    for at in 0..page.blocks.len() {
        let block = page.blocks[at].text.clone();
        let is_before_quoted = at > 0
            && page.blocks[at].heading == page.blocks[at - 1].heading
            && is_quoted(&page.blocks[at - 1].text);
        if let Some(signature) = Signature::of(&block, is_before_quoted) {
            if is_before_quoted && signature.start == 0 {
                dropped[at - 1] = true;
            }
            people.push(signature.name.to_owned());
            let before = block[..signature.start].trim();
            dropped[at] = before.is_empty() || is_quoted(before);
            before.clone_into(&mut page.blocks[at].text);
        } else if is_role(&block) {
            let is_first = at == 0 || page.blocks[at - 1].heading != page.blocks[at].heading;
            if !is_first && is_person(&page.blocks[at - 1].text) {
                people.push(page.blocks[at - 1].text.clone());
                (dropped[at - 1], dropped[at]) = (true, true);
            } else if is_first
                && let Some(heading) = page.blocks[at].heading
                && is_person(&page.headings[heading].text)
                // A page's first heading is its own.
                && page.headings[heading].level > 1
            {
                people.push(page.headings[heading].text.clone());
                (headings_dropped[heading], dropped[at]) = (true, true);
            }
        }
    }
    for person in people {
        if page.people.len() < MAX_PEOPLE && !page.people.contains(&person) {
            page.people.push(person);
        }
    }
    let mut at = 0;
    page.blocks.retain(|_| {
        at += 1;
        !dropped[at - 1]
    });
    // Blocks keep their heading, even if it has no words.
    for (heading, _) in page
        .headings
        .iter_mut()
        .zip(headings_dropped)
        .filter(|(_, d)| *d)
    {
        heading.text.clear();
    }
}

/// Author of the preceding words, at the end of a block.
struct Signature<'a> {
    /// Byte offset of its start, including the dash.
    start: usize,
    name: &'a str,
}

impl<'a> Signature<'a> {
    fn of(block: &'a str, is_behind_quotation: bool) -> Option<Self> {
        Self::behind_dash(block, is_behind_quotation).or_else(|| {
            // A name, and a role or an employer: `Jane Doe, CTO at Acme`.
            let (name, rest) = split_name(block)?;
            let is_short = block.split_whitespace().count() <= MAX_SIGNATURE_WORDS;
            let signs = is_full_name(name) && (names_role(rest) || is_behind_quotation);
            (is_short && signs).then_some(Self { start: 0, name })
        })
    }

    fn behind_dash(block: &'a str, is_behind_quotation: bool) -> Option<Self> {
        let dashes = block
            .char_indices()
            .rev()
            .filter(|(_, c)| DASHES.contains(c));
        for (at, dash) in dashes.take(4) {
            let before = block[..at].trim_end_matches(DASHES).trim_end();
            // A hyphen inside a word does not start a signature.
            let stands_apart = at == 0
                || block[..at].ends_with(|c: char| c.is_whitespace() || !c.is_alphanumeric());
            let signature = block[at + dash.len_utf8()..].trim_start();
            if !stands_apart || signature.split_whitespace().count() > MAX_SIGNATURE_WORDS {
                continue;
            }
            let Some((name, rest)) = split_name(signature) else {
                continue;
            };
            let ends_quotation = if before.is_empty() {
                is_behind_quotation || matches!(dash, '—' | '―')
            } else {
                is_quoted(before)
            };
            let is_alone = rest.is_empty() && is_full_name(name);
            let is_with_role = names_role(rest) && is_full_name(name);
            if is_with_role || (ends_quotation && (is_alone || opens_role(rest))) {
                let start = before.len();
                return Some(Self { start, name });
            }
        }
        None
    }
}

/// Returns the capitalised words at the start of a text, and the rest.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let mut end = 0;
    for (nth, word) in text.split(' ').enumerate() {
        let bare = word.trim_end_matches([',', '|', '(', '·']);
        if nth >= MAX_NAME_WORDS || !is_name_word(bare) {
            break;
        }
        end = text.len().min(end + usize::from(nth > 0) + bare.len());
        if bare.len() < word.len() {
            break;
        }
    }
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

/// Returns whether the word may be part of a name: `Jane`, `O'Neil`, `Jean-Luc`, `D.`
fn is_name_word(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_uppercase)
        && chars.all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-' | '.'))
        && (word.chars().filter(|c| c.is_uppercase()).count() <= 2)
}

/// Returns whether the text is a full name: `Jane Doe`, `Jane D.`
fn is_full_name(name: &str) -> bool {
    let has_initial = |word: &str| word.trim_end_matches('.').chars().nth(1).is_none();
    name.split(' ').nth(1).is_some_and(has_initial) || is_person(name)
}

/// Returns whether the text is two or three capitalised words, at least one of them not an ordinary word.
fn is_person(text: &str) -> bool {
    let is_ordinary = |word: &str| crate::background::is_ordinary(&text::stem(&text::fold(word)));
    matches!(split_name(text), Some((name, "")) if (2..=MAX_NAME_WORDS).contains(&name.split(' ').count())
        && !name.split(' ').all(is_ordinary))
}

/// Returns whether the block is a short line with a profession or position: `Head of Design`, `CTO, Acme`.
fn is_role(block: &str) -> bool {
    let mut words = text::words(block);
    block.split_whitespace().count() <= MAX_ROLE_WORDS
        && !block.ends_with(['.', '!', '?'])
        && block.starts_with(char::is_uppercase)
        && words.by_ref().take(4).any(|word| is_in(ROLES, &word.text))
}

fn opens_role(rest: &str) -> bool {
    rest.starts_with([',', '|', '(', '·'])
}

/// Returns whether the text after a name states the person's role.
fn names_role(rest: &str) -> bool {
    let mut words = text::words(rest).take(4);
    opens_role(rest)
        && (words.any(|word| is_in(ROLES, &word.text) || is_in(CUSTOMERS, &word.text))
            || ROLES_IN_JAPANESE.iter().any(|role| rest.contains(role)))
}

fn is_in(list: &str, folded: &str) -> bool {
    list.split_whitespace().any(|word| word == folded)
}

fn is_quoted(text: &str) -> bool {
    text.starts_with(QUOTES) || text.ends_with(QUOTES)
}
