//! The operations of the API, as the service itself describes them.

use http::Method;
use serde_json::{Value, json};

pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: Method,
    /// Path with parameters in braces.
    pub(super) template: String,
    pub(super) query: Vec<Parameter>,
    pub(super) headers: Vec<Parameter>,
    /// True if `-` in the path stands for every resource.
    pub(super) takes_any: bool,
    pub(super) has_body: bool,
    pub(super) needs_key: bool,
}

pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) is_required: bool,
}

impl Operation {
    /// Returns the path parameters in their order.
    pub(super) fn path_parameters(&self) -> Vec<&str> {
        let starts = self.template.split('{').skip(1);
        starts.map(|rest| rest.split_once('}').unwrap().0).collect()
    }

    pub(super) fn takes_header(&self, name: &str) -> bool {
        let mut headers = self.headers.iter();
        headers.any(|header| header.name.eq_ignore_ascii_case(name))
    }
}

/// Reads all operations of an OpenAPI document.
pub(super) fn operations(document: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, described) in item.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let given = [&item["parameters"], &described["parameters"]];
            let given = given.into_iter().filter_map(Value::as_array).flatten();
            let mut operation = Operation {
                id: described["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                template: template.clone(),
                query: Vec::new(),
                headers: Vec::new(),
                takes_any: false,
                has_body: described.get("requestBody").is_some(),
                needs_key: described["security"] != json!([]),
            };
            for parameter in given {
                let parameter = match parameter["$ref"].as_str() {
                    Some(path) => document.pointer(&path[1..]).unwrap(),
                    None => parameter,
                };
                let read = Parameter {
                    name: parameter["name"].as_str().unwrap().to_owned(),
                    is_required: parameter["required"] == true,
                };
                match parameter["in"].as_str().unwrap() {
                    "query" => operation.query.push(read),
                    "header" => operation.headers.push(read),
                    _ => {
                        let schema = parameter["schema"]["$ref"].as_str();
                        operation.takes_any |= schema.is_some_and(|name| name.ends_with("OrAny"));
                    }
                }
            }
            operations.push(operation);
        }
    }
    assert!(operations.len() > 35, "{} operations", operations.len());
    operations
}
