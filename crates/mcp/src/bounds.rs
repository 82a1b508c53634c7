//! Keeps the answer of a tool within what a model's host takes.

use serde_json::{Value, json};

use crate::quote;

/// Maximum length of the items, as text and as structured content together, in JSON.
const MAX_CHARACTERS: usize = 98_000;
/// Texts are cut to these lengths, tried in this order. The last one leaves resource names whole.
const CUTS: [usize; 5] = [20_000, 8_000, 3_000, 1_000, 250];
/// Lists are cut to one element for each so many characters of that length.
const CHARACTERS_PER_ELEMENT: usize = 50;

/// Items that fit.
pub(crate) struct Fitted {
    pub(crate) items: Vec<Value>,
    /// Length of the texts that were cut, if any was.
    pub(crate) cut_at: Option<usize>,
    /// Number of items that were left out.
    pub(crate) left_out: usize,
}

/// Cuts texts and lists until all items fit together. Items that do not fit even with the shortest texts are left out.
pub(crate) fn fit(given: Vec<Value>) -> Fitted {
    let mut fitted = Fitted {
        items: Vec::new(),
        cut_at: None,
        left_out: 0,
    };
    for most in CUTS {
        fitted.items.clone_from(&given);
        let cut = fitted.items.iter_mut().map(|item| cut(item, most));
        fitted.cut_at = cut.fold(false, |any, one| any | one).then_some(most);
        if fitted.items.iter().map(size).sum::<usize>() <= MAX_CHARACTERS {
            return fitted;
        }
    }
    let count = counted(&fitted.items);
    fitted.left_out = fitted.items.len() - count;
    fitted.items.truncate(count);
    fitted
}

/// Number of items, from the first, that fit with long texts.
pub(crate) fn count(items: &[Value]) -> usize {
    let mut items = items.to_vec();
    for item in &mut items {
        cut(item, CUTS[0]);
    }
    counted(&items)
}

fn counted(items: &[Value]) -> usize {
    let ends = items.iter().scan(0, |end, item| {
        *end += size(item);
        Some(*end)
    });
    ends.take_while(|end| *end <= MAX_CHARACTERS).count()
}

/// Characters of an item in the answer.
fn size(item: &Value) -> usize {
    let text = json!(quote::quoted(item)).to_string();
    let structured = quote::separated(item.clone()).to_string();
    text.chars().count() + structured.chars().count()
}

/// Returns whether something was cut.
fn cut(value: &mut Value, most: usize) -> bool {
    match value {
        Value::String(text) => cut_text(text, most),
        Value::Array(items) => {
            let kept = most / CHARACTERS_PER_ELEMENT;
            let is_long = items.len() > kept;
            items.truncate(kept);
            let cut = items.iter_mut().map(|item| cut(item, most));
            cut.fold(is_long, |any, one| any | one)
        }
        Value::Object(fields) => {
            let cut = fields.values_mut().map(|value| cut(value, most));
            cut.fold(false, |any, one| any | one)
        }
        _ => false,
    }
}

/// Keeps the first `most` characters. Returns whether there were more.
pub(crate) fn cut_text(text: &mut String, most: usize) -> bool {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return false;
    };
    text.truncate(end);
    text.push('…');
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MAX_CHARACTERS, count, cut_text, fit, size};

    fn scan(text: &str) -> Value {
        json!({"name": "n", "value": true, "post": {"title": "backup", "text": text}})
    }

    #[test]
    fn short_items_are_left_as_they_are() {
        let items = vec![scan("a"), scan("b")];
        let fitted = fit(items.clone());
        assert_eq!(
            (fitted.items, fitted.cut_at, fitted.left_out),
            (items, None, 0)
        );
    }

    #[test]
    fn hostile_items_fit() {
        let lists = json!({"require": vec![vec!["kettle"; 500]; 500]});
        let many = json!({"post": {"a": "\u{1}".repeat(9_000), "b": "\"\\".repeat(9_000)}});
        for items in [
            vec![scan(&"\n".repeat(70_000))],
            vec![scan(&"😀\"\\".repeat(30_000)); 50],
            vec![lists],
            vec![many; 50],
        ] {
            let given = items.len();
            let fitted = fit(items.clone());
            assert!(fitted.items.iter().map(size).sum::<usize>() <= MAX_CHARACTERS);
            assert!(fitted.cut_at.is_some() && !fitted.items.is_empty());
            assert_eq!(fitted.items.len() + fitted.left_out, given);
            let first = count(&items);
            let sizes = fit(items[..first].to_vec());
            assert!(first == 0 || sizes.cut_at.is_none_or(|cut| cut == 20_000));
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        let mut text = "äöü".to_owned();
        assert!(!cut_text(&mut text, 3) && cut_text(&mut text, 2));
        assert_eq!(text, "äö…");
    }
}
