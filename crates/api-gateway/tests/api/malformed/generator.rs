//! Malformed requests. A case depends only on the seed and its number, so that a failing case can be generated
//! again.
//!
//! Each case has one fault that certainly makes it malformed, and further random oddities.
use rand::{SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

use self::{luck::pick, request::Request};
use crate::contract;

mod body;
mod head;
mod line;
mod luck;
mod query;
mod request;

/// Existing resources.
pub(super) struct Names {
    pub(super) namespace: String,
    pub(super) manager: String,
    pub(super) connection: String,
}

pub(super) struct Case {
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
}

struct Operation {
    method: String,
    /// Part of an existing resource, if there is one.
    path: String,
    is_list: bool,
    /// A valid body.
    body: Option<Value>,
}

pub(super) struct Generator {
    seed: u64,
    key: String,
    operations: Vec<Operation>,
}

impl Generator {
    pub(super) fn new(seed: u64, key: String, names: Names) -> Self {
        let operations =
            contract::operations()
                .into_iter()
                .filter_map(|(method, template, operation)| {
                    // Operations without a key have no fields that could be invalid.
                    if operation["security"] == json!([]) {
                        return None;
                    }
                    let id = "01jd3y8k6q9v2w4x5z7a8b9c0d";
                    let mut path = template
                        .replace(
                            "namespaces/{namespaceId}/managers/{managerId}",
                            &names.manager,
                        )
                        .replace(
                            "namespaces/{namespaceId}/connections/{connectionId}",
                            &names.connection,
                        )
                        .replace("namespaces/{namespaceId}", &names.namespace);
                    while let (Some(start), Some(end)) = (path.find('{'), path.find('}')) {
                        path.replace_range(start..=end, id);
                    }
                    let example = contract::examples(operation).into_iter().next();
                    let parameters = operation["parameters"].to_string();
                    Some(Operation {
                        is_list: parameters.contains("/Filter\""),
                        body: operation
                            .get("requestBody")
                            .map(|_| example.unwrap_or_else(|| json!({}))),
                        method,
                        path,
                    })
                });
        Self {
            seed,
            key,
            operations: operations.collect(),
        }
    }

    pub(super) fn case(&self, number: usize) -> Case {
        let mut rng = StdRng::seed_from_u64(self.seed.wrapping_add(number as u64));
        let rng = &mut rng;
        let (kind, bytes) = match number % 10 {
            0..=3 => self.bad_body(rng),
            4 | 5 => self.bad_query(rng),
            6 => self.bad_token(rng),
            7 => self.bad_header(rng),
            8 => self.bad_target(rng),
            _ => self.no_http(rng),
        };
        Case { kind, bytes }
    }

    fn request(&self, operation: &Operation) -> Request {
        let mut request = Request {
            method: operation.method.clone(),
            target: operation.path.clone().into_bytes(),
            headers: Vec::new(),
            body: None,
        };
        request.header("authorization", format!("Bearer {}", self.key));
        request
    }

    fn any(&self, rng: &mut StdRng) -> &Operation {
        pick(rng, &self.operations)
    }
}
