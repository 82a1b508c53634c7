//! Changes of a resource: JSON merge patch (RFC 7396), limited by an update mask (AIP-161).
//!
//! A resource defines the paths that clients may set. [`Patch::apply`] then builds a document with only the
//! named fields, each with its new value. The parsers for creation read it: [`Object::given`] runs one if the
//! document has its field. So a new field needs a line in the table of paths, one in the parser of the change,
//! and one in the store.
//!
//! [`Object::given`]: crate::json::Object::given

use serde_json::{Map, Value};

use crate::{Issue, Issues};

const MAX_MASK_BYTES: usize = 2_048;
/// Maximum length of an unknown path in a message.
const MAX_SHOWN_CHARS: usize = 80;

/// The fields of a resource, as paths below it: `input`, `input.urls`.
#[derive(Debug, Clone, Copy)]
pub struct Paths {
    /// Paths that clients may set. Maps and lists have no paths below them: a mask replaces them whole.
    pub settable: &'static [&'static str],
    /// Fields that the service sets: a mask may name them, without effect.
    pub output_only: &'static [&'static str],
}

impl Paths {
    fn knows(&self, path: &str) -> bool {
        self.settable.contains(&path) || self.output_only.contains(&path)
    }

    fn is_settable_field(&self, field: &str) -> bool {
        self.settable.contains(&field)
    }

    fn settable_fields(&self) -> impl Iterator<Item = &'static str> {
        self.settable
            .iter()
            .copied()
            .filter(|path| !path.contains('.'))
    }
}

/// The fields of a PATCH and their values.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    body: Map<String, Value>,
    mask: Mask,
}

#[derive(Debug, Clone, PartialEq)]
enum Mask {
    /// No mask: the fields of the body are merged.
    Body,
    /// `*`: the whole resource is replaced.
    All,
    /// Only these, each replaced.
    Paths(Vec<String>),
}

impl Patch {
    /// An empty mask counts as none.
    ///
    /// # Errors
    /// Issues on `updateMask`, and on `body` if it is not an object.
    pub fn parse(body: &Value, mask: Option<&str>, paths: Paths) -> Result<Self, Issues> {
        let mut issues = Issues::default();
        let mask = parse_mask(mask.unwrap_or_default(), paths, &mut issues);
        let Value::Object(body) = body else {
            issues.add("body", Issue::InvalidType);
            return Err(issues);
        };
        issues.or(Self {
            body: body.clone(),
            mask,
        })
    }

    /// The object that is merged into an object or map; `None` if the field is replaced or not named.
    pub fn merged_into(&self, field: &str) -> Option<&Map<String, Value>> {
        match self.mask {
            Mask::Body => self.body.get(field)?.as_object(),
            Mask::All | Mask::Paths(_) => None,
        }
    }

    /// The settable fields that the patch names; with a mask, their paths.
    pub fn named(&self, paths: Paths) -> Vec<String> {
        let settable = |path: &&String| paths.settable.contains(&path.as_str());
        match &self.mask {
            Mask::Body => self.body.keys().filter(settable).cloned().collect(),
            Mask::All => paths.settable_fields().map(str::to_owned).collect(),
            Mask::Paths(masked) => masked.iter().filter(settable).cloned().collect(),
        }
    }

    /// Returns the changed fields with their new values, given the current resource. A cleared field is `null`.
    /// Fields of the body that clients may not set stay in, so that the parser reports them.
    #[must_use]
    pub fn apply(&self, current: &Value, paths: Paths) -> Value {
        let mut document: Map<String, Value> = self
            .body
            .iter()
            .filter(|(field, _)| !paths.is_settable_field(field))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect();
        match &self.mask {
            Mask::Body => {
                for (field, patch) in &self.body {
                    if paths.is_settable_field(field) {
                        let mut value = current.get(field).cloned().unwrap_or_default();
                        merge(&mut value, patch);
                        document.insert(field.clone(), value);
                    }
                }
            }
            Mask::All => {
                for field in paths.settable_fields() {
                    let value = self.body.get(field).cloned().unwrap_or_default();
                    document.insert(field.to_owned(), value);
                }
            }
            Mask::Paths(masked) => {
                for path in masked {
                    if paths.settable.contains(&path.as_str()) {
                        self.replace(path, current, &mut document);
                    }
                }
            }
        }
        Value::Object(document)
    }

    /// Puts the body's value at `path` into the document, instead of the resource's value.
    fn replace(&self, path: &str, current: &Value, document: &mut Map<String, Value>) {
        let mut parts = path.split('.');
        let field = parts.next().unwrap_or_default();
        let mut given = self.body.get(field).unwrap_or(&Value::Null);
        let mut place = document
            .entry(field)
            .or_insert_with(|| current.get(field).cloned().unwrap_or_default());
        for part in parts {
            match given {
                Value::Object(fields) => given = fields.get(part).unwrap_or(&Value::Null),
                Value::Null => {}
                // Not an object, but the path continues: the parser reports it.
                _ => break,
            }
            if given.is_null() && !place.is_object() {
                // There is nothing to clear, so nothing is created for it.
                return;
            }
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            let Value::Object(fields) = place else { return };
            place = fields.entry(part).or_insert(Value::Null);
        }
        *place = given.clone();
    }
}

fn parse_mask(mask: &str, paths: Paths, issues: &mut Issues) -> Mask {
    if mask.len() > MAX_MASK_BYTES {
        issues.add("updateMask", Issue::TooLong);
        return Mask::Body;
    }
    match mask.trim() {
        "" => return Mask::Body,
        "*" => return Mask::All,
        _ => {}
    }
    let mut named = Vec::new();
    for path in mask.split(',').map(str::trim) {
        if path.is_empty() {
            issues.add_with_hint("updateMask", Issue::InvalidFormat, "an empty path");
        } else if path == "*" {
            issues.add_with_hint("updateMask", Issue::InvalidFormat, "`*` must be alone");
        } else if !paths.knows(path) {
            let shown: String = path.chars().take(MAX_SHOWN_CHARS).collect();
            issues.add_with_hint(
                "updateMask",
                Issue::UnknownField,
                format!("no field `{shown}` to set"),
            );
        } else {
            named.push(path.to_owned());
        }
    }
    // A path comes after the paths below it, so that its parts do not undo it.
    named.sort_unstable_by(|a, b| b.cmp(a));
    named.dedup();
    Mask::Paths(named)
}

/// RFC 7396 section 2. `patch` is not deeper than [`crate::json::parse`] allows.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else {
        return;
    };
    for (field, value) in patch {
        if value.is_null() {
            fields.remove(field);
        } else {
            merge(fields.entry(field.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Patch, Paths, merge};
    use crate::Issue;

    const PATHS: Paths = Paths {
        settable: &["a", "b", "in", "in.x", "in.deep", "in.deep.y"],
        output_only: &["name"],
    };

    fn applied(body: &Value, mask: Option<&str>) -> Value {
        let current = json!({"a": 1, "b": {"k": 1, "l": 2}, "in": {"x": 1, "deep": {"y": 2, "z": 3}}, "name": "n"});
        Patch::parse(body, mask, PATHS)
            .unwrap()
            .apply(&current, PATHS)
    }

    #[test]
    fn the_examples_of_rfc_7396_hold() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            let mut merged = target.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, result, "{target} with {patch}");
        }
    }

    #[test]
    fn patch_without_a_mask_merges_the_body() {
        assert_eq!(applied(&json!({}), None), json!({}));
        assert_eq!(
            applied(&json!({"b": {"k": null, "m": 3}, "a": null}), None),
            json!({"a": null, "b": {"l": 2, "m": 3}})
        );
        assert_eq!(
            applied(&json!({"in": {"deep": {"y": 5}}}), Some("")),
            json!({"in": {"x": 1, "deep": {"y": 5, "z": 3}}})
        );
    }

    #[test]
    fn mask_replaces_only_the_named_fields() {
        let body = json!({"a": 9, "b": {"m": 3}, "in": {"x": 7, "deep": {"y": 8}}});
        assert_eq!(applied(&body, Some("b")), json!({"b": {"m": 3}}));
        assert_eq!(
            applied(&body, Some("in.deep.y, a")),
            json!({"a": 9, "in": {"x": 1, "deep": {"y": 8, "z": 3}}})
        );
        assert_eq!(
            applied(&body, Some("in.deep,in")),
            json!({"in": {"x": 7, "deep": {"y": 8}}})
        );
        // A named field that is absent or null is cleared.
        assert_eq!(
            applied(&json!({"in": {"x": null}}), Some("a,in.x,in.deep.y")),
            json!({"a": null, "in": {"x": null, "deep": {"y": null, "z": 3}}})
        );
        assert_eq!(
            applied(&json!({"in": 5}), Some("in.deep.y")),
            json!({"in": 5})
        );
    }

    #[test]
    fn mask_star_replaces_all_fields() {
        assert_eq!(
            applied(&json!({"a": 2, "name": "x"}), Some("*")),
            json!({"a": 2, "b": null, "in": null, "name": "x"})
        );
    }

    #[test]
    fn output_only_fields_are_left_to_the_parser() {
        let body = json!({"name": "x", "colour": 1, "a": 2});
        assert_eq!(applied(&body, None), body);
        assert_eq!(
            applied(&body, Some("name")),
            json!({"name": "x", "colour": 1})
        );
    }

    #[test]
    fn invalid_mask_paths_are_issues() {
        for (mask, issue) in [
            ("colour", Issue::UnknownField),
            ("b.k", Issue::UnknownField),
            ("a,,b", Issue::InvalidFormat),
            ("a,*", Issue::InvalidFormat),
            (&"a,".repeat(2_000), Issue::TooLong),
        ] {
            let failed = Patch::parse(&json!({}), Some(mask), PATHS).unwrap_err();
            let first = &failed.as_slice()[0];
            assert_eq!((first.field.as_str(), first.issue), ("updateMask", issue));
        }
        let failed = Patch::parse(&json!([]), Some("x"), PATHS).unwrap_err();
        let fields: Vec<&str> = failed
            .as_slice()
            .iter()
            .map(|one| one.field.as_str())
            .collect();
        assert_eq!(fields, ["updateMask", "body"]);
    }
}
