//! Validates instructions from a client.

use serde_json::Value;

use super::{
    Focus, Instructions, MAX_BRIEF_CHARS, MAX_FEEDS, MAX_GROUPS, MAX_OFFERS, MAX_RELATED_TERMS,
    MAX_TERMS, MAX_WEIGHT, NameKind, Term, WatchedName, sells, term,
};
use crate::{FeedName, Issue, feed::FeedRules, json::Object, manager::SourceType};

/// Takes an object in the form of [`Instructions`] whose feeds `rules` allow for a Manager of `source`, and
/// finishes it; `None` after an issue was reported.
pub fn parse(
    object: Object<'_>,
    source: Option<SourceType>,
    rules: &dyn FeedRules,
) -> Option<Instructions> {
    let feeds = parse_feeds(&object, source, rules);
    let require = items(&object, "require", |at, item| {
        let group = item.as_array().ok_or(Issue::InvalidType)?;
        if group.is_empty() {
            return Err(Issue::TooShort);
        }
        Ok(each(
            &object,
            &format!("require[{at}]"),
            group,
            |_, item| term(item),
        ))
    });
    let include = items(&object, "include", |at, item| {
        Ok(Object::at(
            item,
            object.path(&format!("include[{at}]")),
            object.issues(),
        )
        .and_then(parse_term))
    });
    let names = items(&object, "names", |at, item| {
        Ok(
            Object::at(item, object.path(&format!("names[{at}]")), object.issues())
                .and_then(parse_name),
        )
    });
    let exclude = items(&object, "exclude", |_, item| term(item).map(Some));
    let given = object.take("focus");
    let focus = object.word::<Focus>("focus", given);
    let threshold = object
        .take("threshold")
        .and_then(|value| number(&object, "threshold", value));
    if let Some(threshold) = threshold
        && focus.is_some()
        && !(0.0..=1.0).contains(&threshold)
    {
        object.report("threshold", Issue::OutOfRange);
    }
    let background_scores = parse_background_scores(&object);
    let offers = items(&object, "offers", |at, item| {
        let path = object.path(&format!("offers[{at}]"));
        Ok(Object::at(item, path, object.issues()).and_then(parse_offer))
    });
    let related_terms = items(&object, "relatedTerms", |_, item| term(item).map(Some));
    let sells = sells::parse(&object);
    let brief = object.trimmed("brief", object.take("brief"), 0..=MAX_BRIEF_CHARS);
    let says_nothing = ["include", "names", "require", "exclude"]
        .iter()
        .all(|field| object.is_empty(field));
    if says_nothing {
        // Such instructions would match every post.
        object.report("include", Issue::Required);
    }
    let count = require.iter().flatten().map(Vec::len).sum::<usize>()
        + include.as_ref().map_or(0, Vec::len)
        + exclude.as_ref().map_or(0, Vec::len)
        + names
            .iter()
            .flatten()
            .map(|name: &WatchedName| 1 + name.aliases.len() + name.context.len())
            .sum::<usize>();
    if count > MAX_TERMS {
        object.report_whole(Issue::TooMany);
    }
    if related_terms.as_ref().map_or(0, Vec::len) > MAX_RELATED_TERMS {
        object.report("relatedTerms", Issue::TooMany);
    }
    if offers.as_ref().map_or(0, Vec::len) > MAX_OFFERS {
        object.report("offers", Issue::TooMany);
    }
    if require.as_ref().map_or(0, Vec::len) > MAX_GROUPS {
        object.report("require", Issue::TooMany);
    }
    object.finish();
    Some(Instructions {
        feeds: feeds?,
        require: require?,
        include: include?,
        names: names?,
        exclude: exclude?,
        focus,
        threshold,
        background_scores,
        related_terms: related_terms?,
        offers: offers?,
        sells,
        brief: brief.unwrap_or_default(),
    })
}

fn parse_feeds(
    object: &Object<'_>,
    source: Option<SourceType>,
    rules: &dyn FeedRules,
) -> Option<Vec<FeedName>> {
    let feeds = items(object, "feeds", |_, item| {
        let feed: FeedName = item
            .as_str()
            .ok_or(Issue::InvalidType)?
            .parse()
            .ok()
            .ok_or(Issue::InvalidFormat)?;
        rules.check(&feed, source)?;
        Ok(Some(feed))
    })?;
    if feeds.len() > MAX_FEEDS {
        object.report("feeds", Issue::TooMany);
    }
    Some(feeds)
}

/// Three numbers, not negative. They may come in any order, because a JSON schema cannot require one.
fn parse_background_scores(object: &Object<'_>) -> Option<[f64; 3]> {
    let value = object.take("backgroundScores")?;
    let Some(items) = value.as_array() else {
        object.report("backgroundScores", Issue::InvalidType);
        return None;
    };
    let numbers: Vec<f64> = items.iter().filter_map(Value::as_f64).collect();
    if numbers.len() < items.len() {
        object.report("backgroundScores", Issue::InvalidType);
        return None;
    }
    match <[f64; 3]>::try_from(numbers) {
        Ok(mut scores)
            if scores
                .iter()
                .all(|score| (0.0..=MAX_WEIGHT).contains(score)) =>
        {
            scores.sort_by(f64::total_cmp);
            Some(scores)
        }
        Ok(_) => {
            object.report("backgroundScores", Issue::OutOfRange);
            None
        }
        Err(_) => {
            object.report("backgroundScores", Issue::InvalidFormat);
            None
        }
    }
}

fn parse_term(object: Object<'_>) -> Option<Term> {
    let text = object
        .require("text")
        .and_then(|value| or_report(&object, "text", term(value)));
    let weight = object
        .require("weight")
        .and_then(|value| number(&object, "weight", value));
    object.finish();
    Some(Term {
        text: text?,
        weight: weight?,
    })
}

fn parse_offer(object: Object<'_>) -> Option<Term> {
    let text = object
        .require("text")
        .and_then(|value| or_report(&object, "text", term(value)));
    let weight = object.require("weight").and_then(|value| {
        let weight = number(&object, "weight", value)?;
        let bounded = (0.0..=1.0).contains(&weight).then_some(weight);
        or_report(&object, "weight", bounded.ok_or(Issue::OutOfRange))
    });
    object.finish();
    Some(Term {
        text: text?,
        weight: weight?,
    })
}

fn parse_name(object: Object<'_>) -> Option<WatchedName> {
    let text = object
        .require("text")
        .and_then(|value| or_report(&object, "text", term(value)));
    let kind = object.word::<NameKind>("kind", object.require("kind"));
    let aliases = items(&object, "aliases", |_, item| term(item).map(Some));
    let context = items(&object, "context", |_, item| term(item).map(Some));
    let case_sensitive = object
        .boolean("caseSensitive", object.take("caseSensitive"))
        .unwrap_or_default();
    let on_topic_percent = object.take("onTopicPercent").and_then(|value| {
        let percent = number(&object, "onTopicPercent", value)?;
        let in_range = (0.0..=100.0).contains(&percent);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 100"
        )]
        let percent = in_range.then_some(percent.round() as u8);
        or_report(&object, "onTopicPercent", percent.ok_or(Issue::OutOfRange))
    });
    let ordinary_posts = object
        .take("ordinaryPosts")
        .and_then(|value| object.whole_number("ordinaryPosts", value, 0..=10_000))
        .and_then(|posts| u16::try_from(posts).ok());
    object.finish();
    Some(WatchedName {
        text: text?,
        kind: kind?,
        aliases: aliases?,
        case_sensitive,
        context: context?,
        on_topic_percent,
        ordinary_posts,
    })
}

fn number(object: &Object<'_>, field: &'static str, value: &Value) -> Option<f64> {
    let number = value.as_f64().ok_or(Issue::InvalidType);
    let bounded = number.and_then(|number| {
        let sound = (-MAX_WEIGHT..=MAX_WEIGHT).contains(&number);
        sound.then_some(number).ok_or(Issue::OutOfRange)
    });
    or_report(object, field, bounded)
}

fn or_report<T>(object: &Object<'_>, field: &str, result: Result<T, Issue>) -> Option<T> {
    result.map_err(|issue| object.report(field, issue)).ok()
}

/// An optional list; an absent one is empty. `parse` returns `Ok(None)` if it reported the issue itself.
fn items<T>(
    object: &Object<'_>,
    field: &'static str,
    parse: impl Fn(usize, &Value) -> Result<Option<T>, Issue>,
) -> Option<Vec<T>> {
    let Some(value) = object.take(field) else {
        return Some(Vec::new());
    };
    let array = object.array(field, Some(value))?;
    let parsed: Vec<Option<T>> = array
        .iter()
        .enumerate()
        .map(|(at, item)| or_report(object, &format!("{field}[{at}]"), parse(at, item)).flatten())
        .collect();
    parsed.into_iter().collect()
}

fn each<T>(
    object: &Object<'_>,
    path: &str,
    array: &[Value],
    parse: impl Fn(usize, &Value) -> Result<T, Issue>,
) -> Option<Vec<T>> {
    let parsed: Vec<Option<T>> = array
        .iter()
        .enumerate()
        .map(|(at, item)| or_report(object, &format!("{path}[{at}]"), parse(at, item)))
        .collect();
    parsed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::{Value, json};

    use super::parse_background_scores;
    use crate::{Issues, json::Object};

    fn parsed(scores: &Value) -> Option<[f64; 3]> {
        let issues = RefCell::new(Issues::default());
        let instructions = json!({ "backgroundScores": scores });
        let scores = parse_background_scores(&Object::root(&instructions, &issues)?);
        assert_eq!(scores.is_none(), !issues.borrow().is_empty());
        scores
    }

    #[test]
    fn background_scores_come_in_any_order() {
        assert_eq!(parsed(&json!([2.6, 0.0, 1.2])), Some([0.0, 1.2, 2.6]));
        for wrong in [
            json!([1, 2]),
            json!([1, 2, 3, 4]),
            json!([-1, 2, 3]),
            json!([1, 2, 1e7]),
            json!([1, 2, "3"]),
            json!(3),
        ] {
            assert_eq!(parsed(&wrong), None, "{wrong}");
        }
    }
}
