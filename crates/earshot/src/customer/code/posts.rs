//! Posts of the last days that a changed Manager would gain and lose.
//!
//! The service decides on the posts by both versions. It is asked about a fixed span of time, page by page, because new
//! posts arrive between the requests.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use client::Client;
use domain::Timestamp;
use serde_json::{Value, json};

use super::super::{Failure, Given, one_line};

/// Maximum number of posts that the service decides on at once.
const PAGE: usize = 100;
/// Maximum number of pages for one version of a Manager.
const MAX_PAGES: usize = 10;
/// Maximum number of gained posts, and of lost ones, that people are shown.
const MAX_SHOWN: usize = 10;
const MAX_TITLE_CHARS: usize = 100;
/// Smallest difference between the times of two posts.
const INSTANT: Duration = Duration::from_micros(1);

/// One version of a Manager.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Side {
    /// Matches nothing: it does not exist, or is disabled.
    Nothing,
    /// `:preview` of `path` decides, with the fields of `body`.
    Asked {
        path: String,
        body: Value,
        feeds: Value,
        /// The instructions are those at work, which `apply` leaves as they are.
        keeps_instructions: bool,
    },
    /// Its decisions are unknown, for this reason.
    Unknown(&'static str),
}

/// The end is excluded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

/// Decisions of one version.
struct Decided {
    /// Keyed by the id of the post.
    posts: BTreeMap<String, Decision>,
    /// All stored posts since then are among them.
    start: Timestamp,
    /// All posts of the feeds are stored since then, if that is known.
    kept_since: Option<Timestamp>,
    feeds: Value,
}

struct Decision {
    time: Timestamp,
    /// The post, shortened.
    post: Value,
    is_match: bool,
    verdict: Value,
}

/// Returns the posts of the span that only one of the versions matches, with the decisions of both.
pub(super) async fn compare(
    client: &Client,
    [old, new]: &[Side; 2],
    span: Span,
) -> Result<Value, Failure> {
    for side in [old, new] {
        if let Side::Unknown(why) = side {
            return Ok(json!({"unknown": why}));
        }
    }
    let mut decided = [None, None];
    for (side, decided) in [old, new].into_iter().zip(&mut decided) {
        let keeps = matches!(
            side,
            Side::Asked {
                keeps_instructions: true,
                ..
            }
        );
        *decided = match decide(client, side, span).await {
            // For example of a platform that is no longer configured. A draft is checked as if they were new.
            Err(failure) if keeps && refuses_instructions(&failure) => {
                let why = "unknown: the service no longer accepts the present instructions";
                return Ok(json!({"unknown": why}));
            }
            other => other?,
        };
    }
    let sides = decided.each_ref().map(Option::as_ref);
    Ok(difference(sides, span.start))
}

/// Returns true if the service refuses the instructions and nothing else.
fn refuses_instructions(failure: &Failure) -> bool {
    let Failure::Api(error, _) = failure else {
        return false;
    };
    error.refusal().is_some_and(|refusal| {
        let mut details = refusal.details.iter();
        refusal.status == 400
            && !refusal.details.is_empty()
            && details.all(|detail| detail.field.starts_with("instructions"))
    })
}

async fn decide(client: &Client, side: &Side, span: Span) -> Result<Option<Decided>, Failure> {
    let Side::Asked {
        path, body, feeds, ..
    } = side
    else {
        return Ok(None);
    };
    let mut body = body.clone();
    body["recent"] = PAGE.into();
    body["startTime"] = span.start.to_string().into();
    let mut decided = Decided {
        posts: BTreeMap::new(),
        start: span.start,
        kept_since: None,
        feeds: feeds.clone(),
    };
    let mut rest = span;
    for _ in 0..MAX_PAGES {
        body["endTime"] = rest.end.to_string().into();
        let answer = client.act::<Value>(path, "preview", &body).await;
        let answer = answer.map_err(|error| Failure::from(error).with(Given::body(&body)))?;
        let kept_since = answer["keptSince"].as_str();
        decided.kept_since = kept_since.and_then(|time| time.parse().ok());
        let page = answer["results"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(end) = decided.add(page, rest) else {
            break;
        };
        rest.end = end;
    }
    Ok(Some(decided))
}

impl Decided {
    /// Adds the newest posts of `rest`. Returns the end of what is left, or `None` if no more can be read.
    fn add(&mut self, page: &[Value], rest: Span) -> Option<Timestamp> {
        let mut oldest = rest.end;
        for (id, decision) in page.iter().filter_map(Decision::read) {
            oldest = oldest.min(decision.time);
            self.posts.insert(id, decision);
        }
        if page.len() < PAGE {
            self.start = rest.start;
            return None;
        }
        // More posts of this time may follow. If they fill a page, what follows cannot be read.
        self.start = oldest.plus(INSTANT);
        (self.start < rest.end).then_some(self.start)
    }
}

impl Decision {
    fn read(result: &Value) -> Option<(String, Self)> {
        let post = &result["post"];
        let word = |field: &str| post[field].as_str();
        let title = ["title", "text"]
            .into_iter()
            .filter_map(word)
            .find(|text| !text.is_empty());
        let title: String = title
            .unwrap_or_default()
            .chars()
            .take(MAX_TITLE_CHARS)
            .collect();
        let decision = Self {
            time: word("time")?.parse().ok()?,
            post: json!({
                "id": post["id"], "time": post["time"], "url": post["url"], "title": title
            }),
            is_match: result["value"] == true,
            verdict: json!({
                "reason": result["reason"], "score": result["match"]["score"],
                "terms": result["match"]["terms"]
            }),
        };
        Some((word("id")?.to_owned(), decision))
    }
}

/// Compares decisions on the posts since the earliest time that both sides reach. A side without any matches nothing.
fn difference(sides: [Option<&Decided>; 2], asked: Timestamp) -> Value {
    let starts = sides.iter().flatten().map(|side| side.start);
    let start = starts.max().unwrap_or(asked);
    // Unknown if it is for one of them.
    let kept: Option<Vec<_>> = sides.iter().flatten().map(|side| side.kept_since).collect();
    let kept_since = kept.and_then(|times| times.into_iter().max());
    let same_feeds = match sides {
        [Some(old), Some(new)] => old.feeds == new.feeds,
        _ => false,
    };
    let ids: BTreeSet<&String> = sides
        .iter()
        .flatten()
        .flat_map(|side| side.posts.keys())
        .collect();
    let (mut gained, mut lost, mut count) = (Vec::new(), Vec::new(), 0);
    for id in ids {
        let decisions = sides.map(|side| side.and_then(|side| side.posts.get(id)));
        let found = decisions.into_iter().flatten().next();
        let Some(found) = found.filter(|decision| decision.time >= start) else {
            continue;
        };
        // Stored or removed between the requests.
        if same_feeds && decisions.iter().any(Option::is_none) {
            continue;
        }
        count += 1;
        let list = match decisions.map(|it| it.is_some_and(|decision| decision.is_match)) {
            [false, true] => &mut gained,
            [true, false] => &mut lost,
            [true, true] | [false, false] => continue,
        };
        let verdict = |at: usize| match (sides[at], decisions[at]) {
            (None, _) => Value::Null,
            (Some(_), None) => json!({"reason": "NOT_WATCHED"}),
            (Some(_), Some(decision)) => decision.verdict.clone(),
        };
        let mut post = found.post.clone();
        (post["old"], post["new"]) = (verdict(0), verdict(1));
        list.push((Reverse(found.time), post));
    }
    let [gained, lost] = [gained, lost].map(|mut list| {
        list.sort_by_key(|(time, _)| *time);
        list.into_iter().map(|(_, post)| post).collect::<Value>()
    });
    json!({
        "startTime": start.to_string(), "isComplete": start == asked, "compared": count,
        "keptSince": kept_since.map(|time| time.to_string()), "gained": gained, "lost": lost,
    })
}

/// Shows the result of [`compare`] to people.
pub(super) fn text(posts: &Value) -> String {
    if let Some(why) = posts["unknown"].as_str() {
        return format!("    posts: {why}\n");
    }
    let lists =
        ["gained", "lost"].map(|word| posts[word].as_array().map_or(&[][..], Vec::as_slice));
    if posts["compared"] == 0 && posts["isComplete"] == true {
        return "    posts: no stored posts of its feeds: what it finds is not known\n".to_owned();
    }
    let start = one_line(posts["startTime"].as_str().unwrap_or_default());
    let mut note = match posts["isComplete"] == true {
        true => String::new(),
        false => "; older ones were too many to compare".to_owned(),
    };
    match posts["keptSince"].as_str().map(one_line) {
        None => note += "; of some feeds, posts are not stored yet",
        // Both have the same format.
        Some(time) if time > start => note += &format!("; its feeds are stored only since {time}"),
        Some(_) => {}
    }
    let mut text = format!(
        "    of {} stored posts since {start}: {} gained, {} lost{note}\n",
        posts["compared"],
        lists[0].len(),
        lists[1].len()
    );
    for (sign, list) in ['+', '-'].into_iter().zip(lists) {
        for post in list.iter().take(MAX_SHOWN) {
            let word = |field: &str| one_line(post[field].as_str().unwrap_or_default());
            let (old, new) = (verdict(&post["old"]), verdict(&post["new"]));
            text += &format!(
                "      {sign} {}  {}\n        {old} → {new}\n",
                word("title"),
                word("url")
            );
        }
        if list.len() > MAX_SHOWN {
            text += &format!("      {sign} and {} more\n", list.len() - MAX_SHOWN);
        }
    }
    text
}

/// Returns a decision such as `MATCHED 0.61 (backup, nas)`.
fn verdict(verdict: &Value) -> String {
    let Some(reason) = verdict["reason"].as_str() else {
        return "(none)".to_owned();
    };
    let mut text = one_line(reason);
    if let Some(score) = verdict["score"].as_f64() {
        text += &format!(" {score:.2}");
    }
    let terms = verdict["terms"].as_array().into_iter().flatten();
    let terms: Vec<String> = terms.filter_map(Value::as_str).map(one_line).collect();
    if !terms.is_empty() {
        text += &format!(" ({})", terms.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::Timestamp;
    use serde_json::{Value, json};

    use super::{Decided, Decision, INSTANT, PAGE, Span, difference, text};

    fn time(second: u32) -> Timestamp {
        let text = format!("2026-11-21T00:00:{second:02}Z");
        text.parse().unwrap()
    }

    /// Returns the service's decision on a post.
    fn result(id: &str, second: u32, value: bool) -> Value {
        json!({
            "value": value, "reason": if value { "MATCHED" } else { "BELOW_THRESHOLD" },
            "match": {"score": 0.5, "terms": ["nas"]},
            "post": {"id": id, "title": "", "text": format!("Text of {id}\u{1b}"), "url": "https://a.example/", "time": time(second)}
        })
    }

    /// Returns a side that decided on these posts, with the second of each, and whether it matched.
    fn side(feed: &str, start: u32, posts: &[(&str, u32, bool)]) -> Decided {
        let posts = posts
            .iter()
            .map(|&(id, second, value)| Decision::read(&result(id, second, value)).unwrap());
        Decided {
            posts: posts.collect(),
            start: time(start),
            kept_since: Some(time(start)),
            feeds: json!([feed]),
        }
    }

    fn ids(list: &Value) -> Vec<&str> {
        let posts = list.as_array().unwrap().iter();
        posts.map(|post| post["id"].as_str().unwrap()).collect()
    }

    #[test]
    fn gained_and_lost_posts_have_both_decisions() {
        let old = [
            ("a", 1, true),
            ("b", 2, true),
            ("c", 3, false),
            ("d", 4, false),
        ];
        let new = [
            ("a", 1, true),
            ("b", 2, false),
            ("c", 3, true),
            ("d", 4, true),
        ];
        let (old, new) = (side("x", 0, &old), side("x", 0, &new));
        let found = difference([Some(&old), Some(&new)], time(0));
        assert_eq!(ids(&found["gained"]), ["d", "c"]);
        assert_eq!(ids(&found["lost"]), ["b"]);
        assert_eq!(
            (&found["compared"], &found["isComplete"]),
            (&json!(4), &json!(true))
        );
        let shown = text(&found);
        for line in [
            "    of 4 stored posts since 2026-11-21T00:00:00.000000Z: 2 gained, 1 lost\n",
            "      - Text of b\u{fffd}  https://a.example/\n        MATCHED 0.50 (nas) → BELOW_THRESHOLD 0.50 (nas)\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
    }

    #[test]
    fn new_manager_gains_and_deleted_manager_loses_all_its_posts() {
        let only = side("x", 0, &[("a", 1, true), ("b", 2, false)]);
        let created = difference([None, Some(&only)], time(0));
        assert_eq!(ids(&created["gained"]), ["a"]);
        assert_eq!(created["gained"][0]["old"], Value::Null);
        let deleted = difference([Some(&only), None], time(0));
        assert_eq!(ids(&deleted["lost"]), ["a"]);
        assert!(text(&deleted).contains("MATCHED 0.50 (nas) → (none)\n"));
    }

    #[test]
    fn posts_that_one_side_did_not_see_count_only_if_its_feeds_differ() {
        let old = side("x", 0, &[("a", 1, true)]);
        let late = side("x", 0, &[("a", 1, true), ("b", 2, true)]);
        let found = difference([Some(&old), Some(&late)], time(0));
        assert_eq!(
            (ids(&found["gained"]), &found["compared"]),
            (vec![], &json!(1))
        );
        let wider = side("y", 0, &[("a", 1, true), ("b", 2, true)]);
        let found = difference([Some(&old), Some(&wider)], time(0));
        assert_eq!(ids(&found["gained"]), ["b"]);
        assert_eq!(found["gained"][0]["old"], json!({"reason": "NOT_WATCHED"}));
    }

    #[test]
    fn nothing_is_claimed_about_feeds_without_stored_posts() {
        let found = difference([None, Some(&side("x", 0, &[]))], time(0));
        assert_eq!(found["compared"], 0);
        assert!(text(&found).contains("not known"), "{}", text(&found));
    }

    #[test]
    fn days_before_the_feeds_were_stored_are_named() {
        let mut old = side("x", 0, &[("a", 5, true)]);
        let new = side("x", 0, &[("a", 5, false)]);
        old.kept_since = Some(time(4));
        let found = difference([Some(&old), Some(&new)], time(0));
        let kept = "2026-11-21T00:00:04.000000Z";
        assert_eq!(found["keptSince"], kept);
        let line = format!("0 gained, 1 lost; its feeds are stored only since {kept}\n");
        assert!(text(&found).contains(&line), "{}", text(&found));
        old.kept_since = None;
        let found = difference([Some(&old), Some(&new)], time(0));
        assert_eq!(found["keptSince"], Value::Null);
        let line = "1 lost; of some feeds, posts are not stored yet\n";
        assert!(text(&found).contains(line), "{}", text(&found));
    }

    #[test]
    fn posts_are_compared_since_the_time_that_both_sides_reach() {
        let old = side("x", 0, &[("a", 1, true), ("b", 5, true)]);
        let new = side("y", 3, &[("b", 5, false)]);
        let found = difference([Some(&old), Some(&new)], time(0));
        assert_eq!(ids(&found["lost"]), ["b"]);
        assert_eq!(found["isComplete"], false);
        assert!(
            text(&found).contains("since 2026-11-21T00:00:03.000000Z: 0 gained, 1 lost; older")
        );
    }

    #[test]
    fn posts_are_read_until_more_than_a_page_have_one_time() {
        let page = |seconds: [u32; PAGE]| -> Vec<Value> {
            let posts = seconds.into_iter().enumerate();
            posts
                .map(|(at, second)| result(&format!("{second}-{at}"), second, true))
                .collect()
        };
        let mut decided = side("x", 0, &[]);
        let mut rest = Span {
            start: time(0),
            end: time(59),
        };
        let mut seconds = [30; PAGE];
        seconds[0] = 40;
        let next = decided.add(&page(seconds), rest).unwrap();
        assert_eq!(next, time(30).plus(INSTANT));
        rest.end = next;
        assert_eq!(decided.add(&page([30; PAGE]), rest), None);
        // Only the post of the other time is known to be compared with all of its time.
        assert_eq!(decided.start, next);
        let found = difference([None, Some(&decided)], time(0));
        assert_eq!(
            (&found["compared"], &found["isComplete"]),
            (&json!(1), &json!(false))
        );

        assert_eq!(decided.add(&page([30; PAGE])[1..], rest), None);
        assert_eq!(decided.start, time(0));
    }

    #[test]
    fn long_lists_are_cut_for_people() {
        let names: Vec<String> = (0..25).map(|id| id.to_string()).collect();
        let posts: Vec<_> = names.iter().map(|id| (id.as_str(), 1, true)).collect();
        let found = difference([None, Some(&side("x", 0, &posts))], time(0));
        assert_eq!(found["gained"].as_array().unwrap().len(), 25);
        let shown = text(&found);
        assert_eq!(shown.matches("Text of").count(), 10);
        assert!(shown.contains("      + and 15 more\n"), "{shown}");
    }
}
