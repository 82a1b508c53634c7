//! The plan: the changes that make the service match the files.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::{
    super::{Failure, one_line},
    document::{Document, FIELDS, editable},
    posts::{self, Side},
};

/// Fields that decide on posts.
const DECIDING: [&str; 7] = [
    "enable",
    "source",
    "input",
    "instructions",
    "mutes",
    "languages",
    "kinds",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Update,
    Delete,
}

#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) action: Action,
    /// Absent for a Manager that does not exist yet.
    pub(super) name: Option<String>,
    pub(super) nickname: String,
    /// File and line; empty for a Manager that is in no file.
    pub(super) place: String,
    /// Version on the service; null for a new Manager.
    pub(super) old: Value,
    /// Version in the files; null for a Manager to delete.
    pub(super) new: Value,
    /// Instructions that the service uses now, or null.
    at_work: Value,
    /// Posts that it would gain and lose, if that was asked.
    pub(super) posts: Option<Value>,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
    pub(super) unchanged: usize,
}

/// Compares the documents with the Managers of the Namespace, and reports every document that cannot be applied.
pub(super) fn plan(
    namespace: &str,
    documents: Vec<Document>,
    managers: &[Value],
    prune: bool,
) -> Result<Plan, Failure> {
    let mut wrong = repeated(&documents);
    let name_of = |manager: &Value| manager["name"].as_str().unwrap_or_default().to_owned();
    let by_name: HashMap<String, &Value> = managers
        .iter()
        .map(|manager| (name_of(manager), manager))
        .collect();
    let mut by_nickname: HashMap<&str, Vec<&Value>> = HashMap::new();
    for manager in managers {
        let nickname = manager["nickname"].as_str().unwrap_or_default();
        by_nickname.entry(nickname).or_default().push(manager);
    }

    let mut plan = Plan::default();
    let mut taken = HashMap::new();
    for document in documents {
        let place = &document.place;
        let found = match &document.name {
            Some(name) => {
                let collection = format!("{namespace}/managers/");
                let full = match name.contains('/') {
                    true => name.clone(),
                    false => format!("{collection}{name}"),
                };
                let Some(manager) = by_name.get(&full) else {
                    let why = match full.starts_with(&collection) {
                        true => "not_found: remove `name` to create a new Manager",
                        false => "forbidden: it is not in this Namespace",
                    };
                    wrong.push(format!("{place}: name: {why}"));
                    continue;
                };
                Some(*manager)
            }
            None => match by_nickname
                .get(document.nickname())
                .map_or(&[][..], Vec::as_slice)
            {
                [] => None,
                [manager] => Some(*manager),
                _ => {
                    wrong.push(format!(
                        "{place}: nickname: duplicate: several Managers have it; give the `name` of one"
                    ));
                    continue;
                }
            },
        };
        let name = found.map(name_of);
        if let Some(name) = &name
            && let Some(first) = taken.insert(name.clone(), place.clone())
        {
            wrong.push(format!(
                "{place}: name: duplicate: {first} is the same Manager"
            ));
            continue;
        }
        let old = found.map_or(Value::Null, editable);
        let new = with_chosen_feeds(document.spec.clone(), &old);
        if old == new {
            plan.unchanged += 1;
            continue;
        }
        plan.changes.push(Change {
            action: if name.is_some() {
                Action::Update
            } else {
                Action::Create
            },
            name,
            nickname: document.nickname().to_owned(),
            place: document.place,
            old,
            new,
            at_work: found.map_or(Value::Null, |it| it["instructions"].clone()),
            posts: None,
        });
    }
    if !wrong.is_empty() {
        return Err(Failure::usage(wrong.join("\n  ")));
    }
    if prune {
        let left = managers
            .iter()
            .filter(|it| !taken.contains_key(&name_of(it)));
        plan.changes.extend(left.map(|manager| Change {
            action: Action::Delete,
            name: Some(name_of(manager)),
            nickname: manager["nickname"].as_str().unwrap_or_default().to_owned(),
            place: String::new(),
            old: editable(manager),
            new: Value::Null,
            at_work: manager["instructions"].clone(),
            posts: None,
        }));
    }
    Ok(plan)
}

/// Returns the new version with the feeds of the old one, if it names none: then the service has chosen them.
fn with_chosen_feeds(mut new: Value, old: &Value) -> Value {
    // Feeds of another source would be refused.
    let same_source = new["source"] == old["source"];
    let feeds = new.pointer_mut("/instructions/feeds");
    if let Some(feeds) = feeds.filter(|it| same_source && it.as_array().is_some_and(Vec::is_empty))
        && old["instructions"]["feeds"].is_array()
    {
        feeds.clone_from(&old["instructions"]["feeds"]);
    }
    new
}

/// Returns an error for each nickname that several documents share, unless `name` distinguishes all of them.
fn repeated(documents: &[Document]) -> Vec<String> {
    let mut first: HashMap<&str, &Document> = HashMap::new();
    let mut wrong = Vec::new();
    for document in documents {
        match first.get(document.nickname()) {
            Some(other) if other.name.is_none() || document.name.is_none() => {
                wrong.push(format!(
                    "{}: nickname: duplicate: {} has it too; give both their `name`",
                    document.place, other.place
                ));
            }
            // Documents without a name are compared with one another.
            Some(_) => {}
            None => {
                first.insert(document.nickname(), document);
            }
        }
    }
    wrong
}

impl Change {
    /// Returns the fields to name in `updateMask`.
    pub(super) fn mask(&self) -> Vec<&'static str> {
        let changed = FIELDS
            .into_iter()
            .filter(|&field| self.old[field] != self.new[field]);
        // A Manager has either `input` or `instructions`: naming the new one removes the other.
        let leaves =
            |field: &str| matches!(field, "input" | "instructions") && self.new[field].is_null();
        changed.filter(|field| !leaves(field)).collect()
    }

    /// Returns the versions that decide on posts before and after the change; `None` if they decide alike.
    pub(super) fn sides(&self, namespace: &str) -> Option<[Side; 2]> {
        let is_same = |field: &str| self.old[field] == self.new[field];
        if DECIDING.into_iter().all(is_same) {
            return None;
        }
        let sides = [self.old_side(), self.new_side(namespace)];
        (sides != [Side::Nothing, Side::Nothing]).then_some(sides)
    }

    fn old_side(&self) -> Side {
        match &self.name {
            Some(name) if self.old["enable"] == true => match &self.at_work {
                Value::Null => Side::Unknown("unknown until the present version is applied"),
                at_work => Side::Asked {
                    path: name.clone(),
                    body: json!({}),
                    feeds: at_work["feeds"].clone(),
                    keeps_instructions: true,
                },
            },
            _ => Side::Nothing,
        }
    }

    fn new_side(&self, namespace: &str) -> Side {
        let is_same = |field: &str| self.old[field] == self.new[field];
        if self.new["enable"] != true {
            return Side::Nothing;
        }
        if !is_same("kinds") {
            return Side::Unknown("unknown until `kinds` are applied, which change its feeds");
        }
        let instructions = match &self.new["instructions"] {
            Value::Null if is_same("input") && is_same("source") => &self.at_work,
            own => own,
        };
        if instructions.is_null() {
            return Side::Unknown(match self.changes_only_sensitivity() {
                true => "not computed for `input.sensitivity`: unknown until it is applied",
                false => "unknown until the input is compiled",
            });
        }
        let mut body = json!({"source": self.new["source"], "instructions": instructions});
        for field in ["mutes", "languages", "kinds"] {
            if !self.new[field].is_null() {
                body[field] = self.new[field].clone();
            }
        }
        Side::Asked {
            path: format!("{namespace}/managers"),
            body,
            feeds: instructions["feeds"].clone(),
            keeps_instructions: ["source", "input", "instructions"].into_iter().all(is_same),
        }
    }

    /// Returns true if the input stays the same except for its sensitivity, which changes.
    fn changes_only_sensitivity(&self) -> bool {
        let [old, new] = [&self.old, &self.new].map(|version| {
            let mut input = version["input"].clone();
            input["sensitivity"] = Value::Null;
            (&version["source"], input)
        });
        old == new && self.old["input"] != self.new["input"]
    }

    /// Returns the paths that differ, each with its old and new value.
    fn fields(&self) -> Vec<(String, &Value, &Value)> {
        let mut fields = Vec::new();
        for field in FIELDS {
            differences(field, &self.old[field], &self.new[field], &mut fields);
        }
        fields
    }

    fn json(&self) -> Value {
        let action = match self.action {
            Action::Create => "CREATE",
            Action::Update => "UPDATE",
            Action::Delete => "DELETE",
        };
        let mut shown = json!({"action": action, "nickname": self.nickname});
        if let Some(name) = &self.name {
            shown["name"] = name.as_str().into();
        }
        if !self.place.is_empty() {
            shown["place"] = self.place.as_str().into();
        }
        if self.action != Action::Delete {
            let fields = self.fields().into_iter();
            shown["fields"] = fields
                .map(|(field, old, new)| json!({"field": field, "old": old, "new": new}))
                .collect();
        }
        if let Some(posts) = &self.posts {
            shown["posts"] = posts.clone();
        }
        shown
    }

    fn text(&self) -> String {
        let sign = match self.action {
            Action::Create => '+',
            Action::Update => '~',
            Action::Delete => '-',
        };
        let mut text = format!("{sign} {}", one_line(&self.nickname));
        for part in [self.name.as_deref().unwrap_or_default(), &self.place] {
            if !part.is_empty() {
                text += &format!("  {}", one_line(part));
            }
        }
        text.push('\n');
        let fields = match self.action {
            Action::Delete => Vec::new(),
            Action::Create | Action::Update => self.fields(),
        };
        for (field, old, new) in fields {
            match (old, new) {
                (Value::Null, new) => text += &format!("    {field}: {}\n", shown(new)),
                (Value::Array(old), Value::Array(new)) => {
                    text += &format!("    {field}:\n");
                    let lost = old.iter().filter(|item| !new.contains(item));
                    let gained = new.iter().filter(|item| !old.contains(item));
                    let lines = lost
                        .map(|item| ('-', item))
                        .chain(gained.map(|item| ('+', item)));
                    let lines: Vec<String> = lines
                        .map(|(sign, item)| format!("      {sign} {}\n", shown(item)))
                        .collect();
                    text += &match lines.is_empty() {
                        true => "      (another order)\n".to_owned(),
                        false => lines.concat(),
                    };
                }
                (old, new) => text += &format!("    {field}: {} → {}\n", shown(old), shown(new)),
            }
        }
        if let Some(posts) = &self.posts {
            text += &posts::text(posts);
        }
        text
    }
}

impl Plan {
    pub(super) fn json(&self) -> Value {
        let changes: Vec<Value> = self.changes.iter().map(Change::json).collect();
        json!({"changes": changes, "unchanged": self.unchanged})
    }

    pub(super) fn text(&self) -> String {
        let mut text: String = self.changes.iter().map(Change::text).collect();
        let count = |action| self.changes.iter().filter(|it| it.action == action).count();
        text += &format!(
            "= {} unchanged; {} to create, {} to change, {} to delete\n",
            self.unchanged,
            count(Action::Create),
            count(Action::Update),
            count(Action::Delete)
        );
        text
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "(none)".to_owned(),
        value => one_line(&value.to_string()),
    }
}

fn differences<'a>(
    path: &str,
    old: &'a Value,
    new: &'a Value,
    fields: &mut Vec<(String, &'a Value, &'a Value)>,
) {
    if old == new {
        return;
    }
    let (Value::Object(a), Value::Object(b)) = (old, new) else {
        fields.push((path.to_owned(), old, new));
        return;
    };
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for key in keys {
        differences(&format!("{path}.{key}"), &old[key], &new[key], fields);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::document::{Document, canonical},
        Action, Side, plan,
    };

    const NAMESPACE: &str = "namespaces/n";

    fn body(nickname: &str) -> Value {
        json!({
            "nickname": nickname, "type": "FEED_MANAGER", "source": {"type": "FORUM"},
            "instructions": {"require": [["backup"]], "exclude": ["jobs"]}
        })
    }

    fn manager(id: &str, nickname: &str) -> Value {
        let mut manager = canonical(&body(nickname)).unwrap();
        manager["name"] = format!("{NAMESPACE}/managers/{id}").into();
        manager["mode"] = "MANUAL".into();
        manager["state"] = "APPLIED".into();
        manager
    }

    fn document(name: Option<&str>, body: &Value) -> Document {
        Document {
            place: "f.yaml:1".to_owned(),
            name: name.map(str::to_owned),
            spec: canonical(body).unwrap(),
        }
    }

    #[test]
    fn plan_creates_changes_and_deletes() {
        let mut changed = body("b");
        changed["instructions"]["exclude"] = json!(["hiring"]);
        changed["maxScansPerDay"] = json!(7);
        let documents = || {
            vec![
                document(None, &body("a")),
                document(Some("2"), &changed),
                document(None, &body("new")),
            ]
        };
        let managers = [manager("1", "a"), manager("2", "b"), manager("3", "c")];
        let made = plan(NAMESPACE, documents(), &managers, true).unwrap();
        let actions: Vec<Action> = made.changes.iter().map(|it| it.action).collect();
        assert_eq!(actions, [Action::Update, Action::Create, Action::Delete]);
        assert_eq!(made.unchanged, 1);
        assert_eq!(made.changes[0].mask(), ["instructions", "maxScansPerDay"]);
        let text = made.text();
        for line in [
            "~ b  namespaces/n/managers/2  f.yaml:1\n",
            "    instructions.exclude:\n      - \"jobs\"\n      + \"hiring\"\n",
            "    maxScansPerDay: 7\n",
            "+ new  f.yaml:1\n",
            "- c  namespaces/n/managers/3\n",
            "= 1 unchanged; 1 to create, 1 to change, 1 to delete\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let kept = plan(NAMESPACE, documents(), &managers, false).unwrap();
        assert_eq!(kept.changes.len(), 2);
    }

    #[test]
    fn ambiguous_documents_are_refused() {
        let managers = [
            manager("1", "a"),
            manager("2", "same"),
            manager("3", "same"),
        ];
        for (documents, expected) in [
            (vec![document(Some("9"), &body("a"))], "name: not_found"),
            (
                vec![document(Some("namespaces/other/managers/1"), &body("a"))],
                "name: forbidden",
            ),
            (vec![document(None, &body("same"))], "nickname: duplicate"),
            (
                vec![document(None, &body("x")), document(None, &body("x"))],
                "nickname: duplicate",
            ),
            (
                vec![document(Some("1"), &body("x")), document(None, &body("a"))],
                "name: duplicate",
            ),
        ] {
            let refused = plan(NAMESPACE, documents, &managers, false).unwrap_err();
            assert!(refused.words().contains(expected), "{}", refused.words());
        }
    }

    #[test]
    fn feeds_that_the_service_chose_are_no_change() {
        let mut chosen = manager("1", "a");
        chosen["instructions"]["feeds"] = json!(["hackernews:newest"]);
        let mut with_limit = body("a");
        with_limit["instructions"]["threshold"] = json!(2.5);
        let mut elsewhere = body("a");
        elsewhere["source"]["type"] = "MICROBLOG".into();
        let planned = |body: &Value| {
            let documents = vec![document(None, body)];
            plan(NAMESPACE, documents, std::slice::from_ref(&chosen), false).unwrap()
        };
        assert_eq!(planned(&body("a")).unchanged, 1);
        let feeds = |body: &Value| planned(body).changes[0].new["instructions"]["feeds"].clone();
        assert_eq!(feeds(&with_limit), json!(["hackernews:newest"]));
        assert_eq!(feeds(&elsewhere), json!([]));
    }

    #[test]
    fn new_input_replaces_instructions() {
        let mut with_input = body("a");
        with_input.as_object_mut().unwrap().remove("instructions");
        with_input["input"] = json!({
            "type": "STRUCTURED", "urls": ["https://example.com/"], "focus": {"type": "SALES"}
        });
        let documents = vec![document(None, &with_input)];
        let made = plan(NAMESPACE, documents, &[manager("1", "a")], false).unwrap();
        assert_eq!(made.changes[0].mask(), ["input"]);
    }

    #[test]
    fn change_has_two_sides_if_it_changes_decisions() {
        let mut managers = [manager("1", "a")];
        managers[0]["instructions"]["feeds"] = json!(["hackernews:newest"]);
        let sides = |managers: &[Value], file: &Value| {
            let documents = vec![document(None, file)];
            let made = plan(NAMESPACE, documents, managers, false).unwrap();
            made.changes[0].sides(NAMESPACE)
        };
        let mut changed = body("a");
        changed["maxScansPerDay"] = json!(7);
        assert_eq!(sides(&managers, &changed), None);

        changed["mutes"] = json!([{"type": "TERM", "value": "jobs"}]);
        let [old, new] = sides(&managers, &changed).unwrap();
        let feeds = json!(["hackernews:newest"]);
        let expected = Side::Asked {
            path: format!("{NAMESPACE}/managers/1"),
            body: json!({}),
            feeds: feeds.clone(),
            keeps_instructions: true,
        };
        assert_eq!(old, expected);
        let Side::Asked {
            path,
            body: draft,
            feeds: kept,
            ..
        } = new
        else {
            panic!("{new:?}");
        };
        assert_eq!((path.as_str(), kept), ("namespaces/n/managers", feeds));
        assert_eq!(draft["mutes"], changed["mutes"]);

        changed["enable"] = json!(false);
        let [_, new] = sides(&managers, &changed).unwrap();
        assert_eq!(new, Side::Nothing);
        let [old, _] = sides(&[], &body("new")).unwrap();
        assert_eq!(old, Side::Nothing);

        // The instructions that were compiled stay, unless the input changes.
        let mut with_input = body("a");
        let compiled = with_input.as_object_mut().unwrap().remove("instructions");
        with_input["input"] = json!({
            "type": "STRUCTURED", "urls": ["https://example.com/"], "focus": {"type": "SALES"}
        });
        managers[0]["mode"] = json!("AUTOMATIC");
        managers[0]["input"] = with_input["input"].clone();
        with_input["languages"] = json!(["de"]);
        let [_, new] = sides(&managers, &with_input).unwrap();
        let Side::Asked { body: draft, .. } = new else {
            panic!("{new:?}");
        };
        assert_eq!(
            draft["instructions"]["require"],
            compiled.unwrap()["require"]
        );
        with_input["input"]["sensitivity"] = json!("BROAD");
        let [_, new] = sides(&managers, &with_input).unwrap();
        assert!(matches!(new, Side::Unknown(why) if why.contains("`input.sensitivity`")));
        with_input["input"]["urls"] = json!(["https://example.org/"]);
        let [_, new] = sides(&managers, &with_input).unwrap();
        assert!(matches!(new, Side::Unknown(why) if why.contains("compiled")));
    }
}
