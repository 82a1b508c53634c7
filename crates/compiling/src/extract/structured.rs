//! Reads JSON-LD: the names of the organisation, its products and brands. Names of persons and of reviewers are never
//! used.

use serde_json::{Map, Value};

use super::{PageText, tidy};

/// Maximum depth of a JSON-LD graph.
const MAX_DEPTH: usize = 12;
const MAX_NAMES: usize = 50;

/// Adds the content of a `<script type="application/ld+json">` to `page`; ignores invalid input.
pub(super) fn read_json_ld(script: &str, page: &mut PageText) {
    // Old templates wrap it into a comment or a CDATA section.
    let script = script.replace("<![CDATA[", "");
    let start = script.find(['{', '[']).unwrap_or(script.len());
    let mut values = serde_json::Deserializer::from_str(&script[start..]).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        visit(&value, 0, page);
    }
}

fn visit(value: &Value, depth: usize, page: &mut PageText) {
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            for item in items {
                visit(item, depth + 1, page);
            }
        }
        Value::Object(fields) => {
            let types = type_names(fields.get("@type"));
            if types.iter().any(|t| is_foreign(t)) {
                note_people(fields, &types, page);
                return;
            }
            if types.iter().any(|t| is_subject(t)) {
                let names = if types.iter().any(|t| is_product(t)) {
                    &mut page.structured_products
                } else {
                    &mut page.structured_names
                };
                for key in ["name", "alternateName", "legalName"] {
                    add_strings(fields.get(key), 120, names);
                }
                for key in ["description", "slogan", "keywords"] {
                    add_strings(fields.get(key), 600, &mut page.structured_text);
                }
                // A product's brand is often a plain string.
                if fields.get("brand").is_some_and(Value::is_string) {
                    add_strings(fields.get("brand"), 120, &mut page.structured_products);
                }
            }
            for (key, inner) in fields {
                match (key.as_str(), inner) {
                    ("review" | "reviews", Value::Object(review)) => note_people(review, &[], page),
                    ("review" | "reviews", Value::Array(reviews)) => {
                        for review in reviews.iter().filter_map(Value::as_object) {
                            note_people(review, &[], page);
                        }
                    }
                    ("review" | "reviews" | "author" | "comment", _) => {}
                    _ => visit(inner, depth + 1, page),
                }
            }
        }
        _ => {}
    }
}

/// Records the names of a person or of a reviewer, so that they do not become terms.
fn note_people(fields: &Map<String, Value>, types: &[&str], page: &mut PageText) {
    if types.contains(&"Person") {
        add_strings(fields.get("name"), 120, &mut page.people);
    }
    match fields.get("author") {
        Some(Value::Object(author)) => add_strings(author.get("name"), 120, &mut page.people),
        author => add_strings(author, 120, &mut page.people),
    }
}

fn type_names(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_subject(type_name: &str) -> bool {
    let name = type_name.rsplit(['/', ':']).next().unwrap_or(type_name);
    matches!(
        name,
        "Organization"
            | "Corporation"
            | "Brand"
            | "Product"
            | "ProductGroup"
            | "WebSite"
            | "Airline"
            | "Restaurant"
            | "NGO"
    ) || [
        "Business",
        "Store",
        "Organization",
        "Application",
        "Service",
        "Shop",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

/// Returns whether the type is a product or brand of an organisation.
fn is_product(type_name: &str) -> bool {
    let name = type_name.rsplit(['/', ':']).next().unwrap_or(type_name);
    matches!(name, "Brand" | "Product" | "ProductGroup")
}

/// Returns whether the type is about other people, whose names must not be used.
fn is_foreign(type_name: &str) -> bool {
    let name = type_name.rsplit(['/', ':']).next().unwrap_or(type_name);
    matches!(
        name,
        "Person" | "Review" | "Rating" | "AggregateRating" | "Comment" | "BreadcrumbList"
    )
}

fn add_strings(value: Option<&Value>, max_bytes: usize, into: &mut Vec<String>) {
    let texts: Vec<&str> = match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for text in texts {
        let text = tidy(text, max_bytes);
        if !text.is_empty() && into.len() < MAX_NAMES && !into.contains(&text) {
            into.push(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PageText, read_json_ld};

    #[test]
    fn only_organisations_products_and_brands_are_names() {
        let mut page = PageText::default();
        read_json_ld(
            r#"{"@context":"https://schema.org","@graph":[
                {"@type":"Organization","name":"Brewforge","alternateName":["Brew Forge"],
                 "founder":{"@type":"Person","name":"Jane Doe"}},
                {"@type":["Product"],"name":"Lever One","brand":{"@type":"Brand","name":"Brewforge"},
                 "review":[{"@type":"Review","author":"Bob","name":"Superb"}]},
                {"@type":"Article","name":"How we started"}]}"#,
            &mut page,
        );
        assert_eq!(page.structured_names, ["Brewforge", "Brew Forge"]);
        assert_eq!(page.structured_products, ["Lever One", "Brewforge"]);
        assert_eq!(page.people, ["Jane Doe", "Bob"]);
    }

    #[test]
    fn hostile_json_adds_nothing() {
        let mut page = PageText::default();
        read_json_ld(&"[".repeat(200_000), &mut page);
        read_json_ld("{\"@type\":", &mut page);
        assert_eq!(page, PageText::default());
    }
}
