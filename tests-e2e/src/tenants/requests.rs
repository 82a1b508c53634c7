//! Random requests for any operation of the document.
//!
//! A new operation, parameter or body is an error here until someone adds it.

use serde_json::{Value, json};

use super::{
    bodies,
    document::{Operation, Parameter},
    estate::Estate,
    hosts::{Hosts, timestamp},
};
use crate::chance::Chance;

/// Owner of the resources that the path of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Own,
    /// The other account; the first segments may be of the own one.
    Foreign,
}

const OWNER: usize = 0;
const EDITOR: usize = 1;
const VIEWER: usize = 2;
/// Resources of a kind that are always kept.
pub(super) const FIXED: usize = 3;
/// Resources of a kind that an account has at most.
const MOST: usize = 8;

pub(super) struct Request {
    pub(super) operation: String,
    /// Index of the account's key.
    pub(super) key: usize,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    /// Name of the resource in the path.
    pub(super) name: Option<String>,
}

impl Request {
    /// Returns path and query.
    pub(super) fn target(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let mut url = url::Url::parse("http://host/").unwrap();
        url.query_pairs_mut().extend_pairs(&self.query);
        format!("{}?{}", self.path, url.query().unwrap())
    }

    /// Returns everything that the caller sent, in lower case.
    pub(super) fn sent(&self) -> String {
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let sent = format!("{} {:?} {:?} {body}", self.path, self.query, self.headers);
        sent.to_ascii_lowercase()
    }

    pub(super) fn is_test(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == "x-test")
    }
}

/// Inputs of a request.
pub(super) struct Maker<'a> {
    pub(super) own: &'a mut Estate,
    pub(super) other: &'a Estate,
    pub(super) hosts: &'a Hosts,
    pub(super) chance: &'a mut Chance,
    pub(super) target: Target,
    /// True for a request that should succeed: the OWNER's, without options.
    pub(super) is_plain: bool,
}

impl Maker<'_> {
    /// Returns a request; `None` if there is no resource yet that its path could name.
    pub(super) fn make(&mut self, operation: &Operation) -> Option<Request> {
        let mut request = Request {
            operation: operation.id.clone(),
            key: self.key(),
            path: operation.template.clone(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            name: None,
        };
        let mut must_roll_back = false;
        let parameters = operation.path_parameters();
        if let Some(deepest) = parameters.last() {
            let collection = collection(deepest);
            let deletes = operation.method == "DELETE" && self.target == Target::Own;
            let name = if deletes {
                let all = self.own.all(collection);
                must_roll_back = collection != "replays" && all.len() <= FIXED;
                all.last().map(|name| (*name).to_owned())
            } else {
                self.name(collection)
            };
            let name = name?;
            let segments: Vec<&str> = name.split('/').collect();
            for (index, parameter) in parameters.iter().enumerate() {
                let is_last = index + 1 == parameters.len();
                let any = operation.takes_any && is_last && !self.is_plain && self.chance.one_in(3);
                let id = if any { "-" } else { segments[2 * index + 1] };
                request.path = request.path.replace(&format!("{{{parameter}}}"), id);
            }
            request.name = Some(name);
        }
        if let Some(created) = operation.id.strip_prefix("create") {
            let collection = format!("{}s", created.to_lowercase());
            must_roll_back = self.own.all(&collection).len() >= MOST;
        }
        self.query(operation, &mut request);
        if operation.has_body {
            let body = bodies::body(self, operation, request.name.as_deref());
            request.body = Some(body);
            let json = "application/json".to_owned();
            request.headers.push(("content-type".to_owned(), json));
        }
        self.headers(operation, &mut request, must_roll_back);
        Some(request)
    }

    /// Returns the account whose names and values a request uses outside of its path: sometimes the other one.
    pub(super) fn lender(&mut self) -> &Estate {
        if !self.is_plain && self.chance.one_in(3) {
            self.other
        } else {
            self.own
        }
    }

    fn key(&mut self) -> usize {
        if self.is_plain {
            return OWNER;
        }
        let keys = [OWNER, OWNER, OWNER, OWNER, EDITOR, EDITOR, VIEWER];
        *self.chance.pick(&keys).unwrap()
    }

    /// Returns a name in a collection: of the own account or, of a foreign one, its end at least.
    fn name(&mut self, collection: &str) -> Option<String> {
        if self.target == Target::Own {
            return self.own.any(collection, self.chance);
        }
        let foreign = self.other.any(collection, self.chance)?;
        let pairs = foreign.split('/').count() / 2;
        let kept = self.chance.below(u64::try_from(pairs).unwrap());
        let kept = 2 * usize::try_from(kept).unwrap();
        let Some(own) = self.own.any(collection, self.chance) else {
            return Some(foreign);
        };
        let start = own.split('/').take(kept);
        let all: Vec<&str> = start.chain(foreign.split('/').skip(kept)).collect();
        Some(all.join("/"))
    }

    fn query(&mut self, operation: &Operation, request: &mut Request) {
        // A page after one that either account has read.
        let same = self
            .lender()
            .pages
            .iter()
            .filter(|page| page.operation == operation.id);
        let pages: Vec<_> = same.cloned().collect();
        if !self.is_plain && self.chance.one_in(2) && !pages.is_empty() {
            let page = self.chance.pick(&pages).unwrap();
            request.query.clone_from(&page.query);
            let token = ("pageToken".to_owned(), page.token.clone());
            request.query.push(token);
            return;
        }
        for parameter in &operation.query {
            let wanted = parameter.is_required
                || parameter.name == "force"
                || !self.is_plain && self.chance.one_in(3);
            if let Some(value) = self.value(parameter).filter(|_| wanted) {
                request.query.push((parameter.name.clone(), value));
            }
        }
    }

    fn value(&mut self, parameter: &Parameter) -> Option<String> {
        let pick = |values: &[&str], chance: &mut Chance| {
            let value = chance.pick(values).map(|value| (*value).to_owned());
            value.unwrap()
        };
        let value = match parameter.name.as_str() {
            "pageSize" => pick(&["0", "1", "2", "3", "50", "1000"], self.chance),
            "pageToken" => return None,
            "filter" => self.filter(),
            "orderBy" => {
                let fields = [
                    "createTime",
                    "name desc",
                    "nickname",
                    "post.title, name",
                    "updateTime desc",
                    "state",
                ];
                pick(&fields, self.chance)
            }
            "updateMask" => pick(&["nickname", "labels", "mutes", "*"], self.chance),
            "force" => "true".to_owned(),
            "startTime" => timestamp(3_600),
            "endTime" => timestamp(0),
            "interval" => pick(&["1m", "1h", "1d"], self.chance),
            other => panic!("no value for the query parameter `{other}`: add one"),
        };
        Some(value)
    }

    /// Returns a filter, which may look for what the other account has.
    fn filter(&mut self) -> String {
        let words: Vec<&String> = self.other.words.iter().collect();
        let word = self.chance.pick(&words);
        let word = word.map_or_else(String::new, |word| (*word).clone());
        let name = self.other.any("scans", self.chance).unwrap_or_default();
        let forms = [
            "createTime > \"2026-01-01T00:00:00Z\"".to_owned(),
            format!("nickname : \"{word}\""),
            format!("NOT nickname = \"{word}\""),
            format!("post.text : \"{word}\" OR post.title : \"kettle\""),
            format!("labels : \"{word}\""),
            format!("name = \"{name}\""),
            format!("name >= \"{name}\""),
            "nickname : \"content\"".to_owned(),
        ];
        self.chance.pick(&forms).unwrap().clone()
    }

    fn headers(&mut self, operation: &Operation, request: &mut Request, must_roll_back: bool) {
        for header in &operation.headers {
            let known = ["x-test", "x-request-id", "idempotency-key", "if-none-match"];
            let name = header.name.to_ascii_lowercase();
            assert!(
                known.contains(&name.as_str()),
                "no value for the header `{name}`: add one"
            );
        }
        let mut add = |name: &str, value| request.headers.push((name.to_owned(), value));
        let is_test = !self.is_plain && operation.takes_header("x-test") && self.chance.one_in(8);
        if must_roll_back || is_test {
            add("x-test", "true".to_owned());
        }
        if self.is_plain {
            return;
        }
        // Both accounts use the same few ids.
        let number = self.chance.below(4);
        match self.chance.below(3) {
            0 => add("x-request-id", format!("request-{number}")),
            1 => add("x-request-id", self.own.content("requestid")),
            _ => {}
        }
        if self.chance.one_in(3) {
            let trace = format!("0af7651916cd43dd8448eb211c80319{number}");
            add("traceparent", format!("00-{trace}-b7ad6b7169203331-01"));
        }
        if operation.takes_header("if-none-match") && self.chance.one_in(2) {
            let etags: Vec<String> = self.lender().etags.iter().cloned().collect();
            let etag = self.chance.pick(&etags).into_iter();
            etag.for_each(|etag| add("if-none-match", etag.clone()));
        }
        if operation.takes_header("idempotency-key") && self.chance.one_in(3) {
            add("idempotency-key", format!("order-{number}"));
            if operation.id == "createNamespace" {
                // The very request that the other account makes.
                request.body = Some(json!({"nickname": "Shared"}));
            }
        }
    }
}

/// Returns the collection that a path parameter is of.
fn collection(parameter: &str) -> &'static str {
    match parameter {
        "namespaceId" => "namespaces",
        "managerId" => "managers",
        "connectionId" => "connections",
        "scanId" => "scans",
        "deliveryId" => "deliveries",
        "replayId" => "replays",
        other => panic!("no collection for the path parameter `{other}`: add one"),
    }
}
