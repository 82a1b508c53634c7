//! Malformed requests: a case is made of the seed and its number alone, so that one that fails can be made
//! again.
//!
//! Each case has a fault that makes it malformed for certain; what else is odd about it is a matter of luck.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use crate::contract;

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
    /// Of an existing resource, as far as there is one.
    path: String,
    is_list: bool,
    /// A body that would be taken.
    body: Option<Value>,
}

pub(super) struct Generator {
    seed: u64,
    key: String,
    operations: Vec<Operation>,
}

/// One request in the making.
struct Request {
    method: String,
    target: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Request {
    fn header(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.headers.push((name.into(), value.as_ref().to_vec()));
    }

    fn bytes(mut self) -> Vec<u8> {
        if let Some(body) = &self.body {
            let length = body.len().to_string();
            self.header("content-length", length);
        }
        let mut bytes = self.method.into_bytes();
        bytes.push(b' ');
        bytes.extend(self.target);
        bytes.extend(b" HTTP/1.1\r\nhost: x\r\n");
        for (name, value) in self.headers {
            bytes.extend([&name[..], b": ", &value, b"\r\n"].concat());
        }
        bytes.extend(b"\r\n");
        bytes.extend(self.body.unwrap_or_default());
        bytes
    }
}

impl Generator {
    pub(super) fn new(seed: u64, key: String, names: Names) -> Self {
        let operations =
            contract::operations()
                .into_iter()
                .filter_map(|(method, template, operation)| {
                    // What needs no key has no fields to be wrong about.
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

    fn bad_body(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let taking: Vec<&Operation> = self
            .operations
            .iter()
            .filter(|one| one.body.is_some())
            .collect();
        let operation = *pick(rng, &taking);
        let good = operation.body.clone().unwrap_or_default();
        let mut request = self.request(operation);
        let mut content_type = "application/json";
        let (kind, body) = match rng.random_range(0..13) {
            0 | 1 => ("broken JSON", broken(rng, &good)),
            2 => {
                let root = pick(
                    rng,
                    &["[]", "7", "null", "\"x\"", "true", "-0.0", "[{}]", "1e308"],
                );
                ("a root of the wrong type", root.as_bytes().to_vec())
            }
            3..=5 => ("wrong types", wrong_types(rng, &good)),
            6 => {
                let open = pick(rng, &["[", "{\"a\":", "[[{\"x\":"]);
                let depth = rng.random_range(130..20_000);
                let close = if *open == "[" && rng.random() {
                    "]".repeat(depth)
                } else {
                    String::new()
                };
                (
                    "deep nesting",
                    format!("{{\"nickname\": {}{close}", open.repeat(depth)).into_bytes(),
                )
            }
            7 => {
                let digits = "9".repeat(rng.random_range(400..5_000));
                let number = pick(
                    rng,
                    &[
                        "1e999999",
                        "-1e400",
                        "1E+100000000000000000000",
                        "@",
                        "-@",
                        "@.@e@",
                    ],
                );
                let number = number.replace('@', &digits);
                ("huge numbers", with(&good, "zzz", &number).into_bytes())
            }
            8 => {
                let mut body = with(&good, "zzz", "\"@@\"").into_bytes();
                let bad = *pick(
                    rng,
                    &[
                        &b"\xff"[..],
                        b"\xc0\xaf",
                        b"\xed\xa0\x80",
                        b"\xf5\x80\x80\x80",
                        b"\xe2\x82",
                        b"\x80",
                    ],
                );
                let at = body.windows(2).position(|two| two == b"@@").unwrap_or(0);
                body.splice(at..at + 2, bad.iter().copied());
                ("bad UTF-8", body)
            }
            9 => {
                let bad = pick(
                    rng,
                    &[
                        "\\ud800",
                        "\\udc00\\ud800",
                        "\\u12",
                        "\\x41",
                        "a\nb",
                        "\u{1}",
                        "\\",
                    ],
                );
                (
                    "bad strings",
                    with(&good, "zzz", &format!("\"{bad}\"")).into_bytes(),
                )
            }
            10 => ("duplicate keys", with(&good, "a", "1,\"a\":2").into_bytes()),
            11 => {
                content_type = *pick(
                    rng,
                    &[
                        "text/plain",
                        "application/xml",
                        "",
                        "json",
                        "application/json; charset=utf-16",
                        "\u{7f}",
                        "application/json, text/plain",
                        "multipart/form-data; boundary=",
                    ],
                );
                ("another content type", good.to_string().into_bytes())
            }
            _ if rng.random_range(0..8) == 0 => {
                let padding = " ".repeat(300_000);
                ("a large body", format!("{padding}{good}").into_bytes())
            }
            _ => {
                request.header(
                    "content-encoding",
                    *pick(
                        rng,
                        &["gzip", "br", "zstd", "x", "identity, gzip", "\u{fc}"],
                    ),
                );
                ("an encoded body", bytes(rng, 100))
            }
        };
        request.header("content-type", content_type);
        request.body = Some(body);
        if request.body.as_ref().is_some_and(|body| body.len() < 4_000)
            && rng.random_range(0..4) == 0
        {
            return (kind, chunked(rng, request));
        }
        (kind, request.bytes())
    }

    fn bad_query(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let lists: Vec<&Operation> = self.operations.iter().filter(|one| one.is_list).collect();
        let list = *pick(rng, &lists);
        let (kind, operation, query) = match rng.random_range(0..8) {
            0 => (
                "an unknown parameter",
                self.any(rng),
                format!("{}=1", word(rng)),
            ),
            1 => {
                let size = pick(
                    rng,
                    &[
                        "-1", "1.5", "x", "1e2", "0x10", "--", "%00", "\u{0661}", "+", "1,2",
                    ],
                );
                (
                    "a bad pageSize",
                    list,
                    format!("pageSize={}", encoded(size.as_bytes())),
                )
            }
            2 | 3 => {
                let token = if rng.random() {
                    let length = rng.random_range(1..300);
                    encoded(&bytes(rng, length))
                } else {
                    let letters =
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
                    let letters: Vec<char> = letters.chars().collect();
                    (0..rng.random_range(1..200))
                        .map(|_| *pick(rng, &letters))
                        .collect()
                };
                ("a bad pageToken", list, format!("pageToken={token}"))
            }
            4 | 5 => {
                const WORDS: [&str; 22] = [
                    "AND",
                    "OR",
                    "NOT",
                    "-",
                    "(",
                    ")",
                    "=",
                    "!=",
                    "<",
                    ">=",
                    ":",
                    "\"x\"",
                    "\"",
                    "createTime",
                    "nickname",
                    "nope",
                    "1e999",
                    "\\",
                    "\u{0}",
                    "'",
                    "true",
                    "\"2026-99-99T00:00:00Z\"",
                ];
                let many = if rng.random_range(0..20) == 0 {
                    300
                } else {
                    12
                };
                let words: Vec<&str> = (0..rng.random_range(1..many))
                    .map(|_| *pick(rng, &WORDS))
                    .collect();
                // Cut short, whatever came before.
                let filter = format!("{} AND", words.join(" "));
                (
                    "a bad filter",
                    list,
                    format!("filter={}", encoded(filter.as_bytes())),
                )
            }
            6 => {
                let order = pick(
                    rng,
                    &[
                        "nope",
                        "createTime up",
                        "createTime desc asc",
                        ",",
                        "createTime,,name",
                        "createTime;drop",
                        "createTime,createTime",
                        "\"createTime\"",
                        "\u{0}",
                        "-createTime",
                    ],
                );
                (
                    "a bad orderBy",
                    list,
                    format!("orderBy={}", encoded(order.as_bytes())),
                )
            }
            _ => {
                let twice = pick(
                    rng,
                    &[
                        "pageSize=1&pageSize=2",
                        "=",
                        "&=x",
                        "%ff=%fe",
                        "pageSize=%zz",
                        "%00=1",
                        "filter=%c0%80",
                        "pageSize=1;x",
                    ],
                );
                ("a bad query", list, (*twice).to_owned())
            }
        };
        let mut request = self.request(operation);
        request.target.push(b'?');
        request.target.extend(query.into_bytes());
        (kind, request.bytes())
    }

    fn bad_token(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let operation = self.any(rng);
        let mut request = self.request(operation);
        let (_, good) = request.headers.remove(0);
        let (scheme, good) = good.split_at("Bearer ".len());
        let mut token = good.to_vec();
        match rng.random_range(0..7) {
            0 => token.truncate(rng.random_range(0..good.len())),
            1 => {
                // The last character has bits that say nothing.
                let at = rng.random_range(0..good.len() - 1);
                token[at] = if token[at] == b'x' { b'y' } else { b'x' };
            }
            2 => token.extend(b"A".repeat(rng.random_range(1..5_000))),
            3 => {
                let length = rng.random_range(1..200);
                token = bytes(rng, length)
                    .into_iter()
                    .filter(|byte| *byte > 32 && *byte != 127)
                    .collect();
            }
            4 => token = b"' OR 1=1 --".to_vec(),
            5 => request.header("authorization", [scheme, good].concat()),
            _ => token.reverse(),
        }
        let scheme = match rng.random_range(0..4) {
            0 => *pick(rng, &["Basic ", "Bearer", "Bear ", "Bearer: ", "\u{e9} "]),
            _ => "Bearer ",
        };
        request.header("authorization", [scheme.as_bytes(), &token].concat());
        ("a bad token", request.bytes())
    }

    fn bad_header(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let operation = self.any(rng);
        let mut request = self.request(operation);
        let kind = match rng.random_range(0..9) {
            0 | 1 => {
                request.header(
                    "x-test",
                    *pick(
                        rng,
                        &[
                            "1",
                            "on",
                            "maybe",
                            "",
                            "truefalse",
                            "\u{fc}",
                            "true, true",
                            "yes;no",
                        ],
                    ),
                );
                if operation.method != "GET" {
                    request.header("content-type", "application/json");
                    request.body = Some(
                        operation
                            .body
                            .clone()
                            .unwrap_or_else(|| json!({}))
                            .to_string()
                            .into_bytes(),
                    );
                }
                "a bad x-test"
            }
            2 => {
                let lengths = pick(
                    rng,
                    &[
                        "-1",
                        "1e3",
                        "0x10",
                        "99999999999999999999999",
                        "1, 2",
                        "+5",
                        "",
                        " ",
                        "5 5",
                    ],
                );
                request.header("content-length", lengths);
                request.method = "POST".to_owned();
                "a bad content-length"
            }
            3 => {
                request.header("content-length", "5");
                request.header("content-length", "6");
                "two content-lengths"
            }
            4 => {
                request.method = "POST".to_owned();
                request.header(
                    "transfer-encoding",
                    *pick(
                        rng,
                        &[
                            "x",
                            "chunked, x",
                            "gzip",
                            "chunkedx",
                            ", ",
                            "identity, chunked, gzip",
                        ],
                    ),
                );
                request.body = Some(b"{}".to_vec());
                "a bad transfer-encoding"
            }
            5 => {
                let length = rng.random_range(140_000..200_000);
                request.header("x-large", "x".repeat(length));
                "a large header"
            }
            6 => {
                for number in 0..rng.random_range(120..400) {
                    request.header(&format!("x-{number}"), "y");
                }
                "many headers"
            }
            7 => {
                let name = pick(
                    rng,
                    &["a b", "a\u{0}", "(x)", "\u{fc}", "", "x\t", "[", "x\"y"],
                );
                request.header(name, "1");
                "a bad header name"
            }
            _ => {
                let value = *pick(rng, &[&b"a\x00b"[..], b"a\rb", b"\x07", b"\x7f"]);
                request.header("x-odd", value);
                "a bad header value"
            }
        };
        (kind, request.bytes())
    }

    fn bad_target(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let operation = self.any(rng);
        let mut request = self.request(operation);
        let kind = match rng.random_range(0..6) {
            0 => {
                let target = pick(
                    rng,
                    &[
                        "/v1/namespaces/%",
                        "/v1/namespaces/%00",
                        "/v1/%ff%fe",
                        "/../../etc/passwd",
                        "//",
                        "/",
                        "/v1//namespaces",
                        "/v1/namespaces/../namespaces",
                        "/v1/namespaces/%2e%2e",
                        "/v2/namespaces",
                        "*",
                        "/v1/namespaces/\u{fc}",
                        "/v1/namespaces/x:apply",
                        "/%76%31/nowhere",
                        "http://[::1/v1",
                        "/v1/namespaces/;",
                    ],
                );
                request.target = target.as_bytes().to_vec();
                "an odd path"
            }
            1 => {
                let junk = encoded(&bytes(rng, 40));
                request.target = format!("/v1/namespaces/{junk}/managers/{junk}").into_bytes();
                "ids of junk"
            }
            2 => {
                request.target =
                    format!("/v1/{}", "x/".repeat(rng.random_range(1_000..40_000))).into_bytes();
                "a long path"
            }
            3 => {
                request
                    .target
                    .extend(format!("/{}", word(rng)).into_bytes());
                request.target.extend(b"/and/on");
                "a path that goes on"
            }
            4 => {
                request.method = (*pick(
                    rng,
                    &[
                        "BREW", "get", "PUT", "TRACE", "PROPFIND", "M-SEARCH", "LINK", "X",
                    ],
                ))
                .to_owned();
                "an odd method"
            }
            _ => {
                request.method =
                    (*pick(rng, &["G\u{cb}T", "G@T", "(GET)", "\u{0}", "\"\"", "GET,"])).to_owned();
                "a method that is none"
            }
        };
        (kind, request.bytes())
    }

    fn no_http(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let path = &self.any(rng).path;
        let key = &self.key;
        let bearer = format!("authorization: Bearer {key}");
        let (kind, mut bytes) = match rng.random_range(0..6) {
            0 => {
                let length = rng.random_range(1..400);
                let mut junk = bytes(rng, length);
                // An empty line before a request is to be ignored (RFC 9112 2.2).
                junk.insert(0, 0x80 | junk[0]);
                ("junk", junk)
            }
            1 => {
                let version = pick(
                    rng,
                    &[
                        "HTTP/3.7",
                        "HTTP/",
                        "HTTPS/1.1",
                        "HTTP/1.",
                        "http/1.1",
                        "HTTP/1.1x",
                        "HTTP/9",
                    ],
                );
                (
                    "a version that is none",
                    format!("GET {path} {version}\r\nhost: x\r\n{bearer}").into_bytes(),
                )
            }
            2 => (
                "a request line of other parts",
                format!("GET  {path} and more HTTP/1.1\r\nhost: x\r\n{bearer}").into_bytes(),
            ),
            3 => (
                "a header without a colon",
                format!("GET {path} HTTP/1.1\r\nhost x\r\n{bearer}").into_bytes(),
            ),
            4 => (
                "a folded header",
                format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-a: b\r\n c\r\n{bearer}").into_bytes(),
            ),
            _ => {
                let size = pick(
                    rng,
                    &["zz", "-5", "ffffffffffffffffff", "5 x", "", ";", "0x5"],
                );
                let head = format!(
                    "POST /v1/namespaces HTTP/1.1\r\nhost: x\r\n{bearer}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked"
                );
                (
                    "a chunk of no size",
                    format!("{head}\r\n\r\n{size}\r\n{{\"ni").into_bytes(),
                )
            }
        };
        bytes.extend(b"\r\n\r\n");
        (kind, bytes)
    }
}

fn pick<'a, T>(rng: &mut StdRng, items: &'a [T]) -> &'a T {
    items.choose(rng).expect("there is something to pick from")
}

fn bytes(rng: &mut StdRng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.random()).collect()
}

fn word(rng: &mut StdRng) -> String {
    let length = rng.random_range(1..30);
    let letters: Vec<char> = "abcXYZ_-.\u{fc}\u{4e00}".chars().collect();
    let text: String = (0..length).map(|_| *pick(rng, &letters)).collect();
    format!("zz{}", encoded(text.as_bytes()))
}

fn encoded(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02x}")).collect()
}

/// The object `good` with one more entry, which is text and need not be JSON.
fn with(good: &Value, key: &str, text: &str) -> String {
    let good = good.to_string();
    let rest = good.strip_prefix('{').unwrap_or("}");
    let comma = if rest == "}" { "" } else { "," };
    format!("{{\"{key}\":{text}{comma}{rest}")
}

/// `good`, damaged until it is no JSON.
fn broken(rng: &mut StdRng, good: &Value) -> Vec<u8> {
    let good = good.to_string().into_bytes();
    for _ in 0..5 {
        let mut damaged = good.clone();
        for _ in 0..rng.random_range(1..4) {
            let at = rng.random_range(0..damaged.len());
            match rng.random_range(0..3) {
                0 => damaged.truncate(at.max(1)),
                1 => damaged[at] = rng.random(),
                _ => damaged.insert(at, *pick(rng, b"{}[],:\"\\0")),
            }
        }
        if serde_json::from_slice::<Value>(&damaged).is_err() {
            return damaged;
        }
    }
    b"{".to_vec()
}

/// `good` with values of other types in it, and a field that does not exist.
fn wrong_types(rng: &mut StdRng, good: &Value) -> Vec<u8> {
    let others = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}"),
        json!("x".repeat(9_000)),
        json!([]),
        json!([[[]]]),
        json!({}),
        json!({"": {"": null}}),
        json!([1, "2", null, {"three": 3}]),
        json!("\u{202e}\u{feff}"),
    ];
    let mut body = good.clone();
    for _ in 0..rng.random_range(1..5) {
        let by = pick(rng, &others).clone();
        replace(rng, &mut body, &by);
    }
    match &mut body {
        Value::Object(map) => {
            map.insert("zzz".to_owned(), pick(rng, &others).clone());
        }
        other => *other = json!({"zzz": 1}),
    }
    body.to_string().into_bytes()
}

fn replace(rng: &mut StdRng, value: &mut Value, by: &Value) {
    let below: Vec<&mut Value> = match value {
        Value::Object(map) if !map.is_empty() => map.values_mut().collect(),
        Value::Array(items) if !items.is_empty() => items.iter_mut().collect(),
        _ => {
            *value = by.clone();
            return;
        }
    };
    let at = rng.random_range(0..below.len());
    for (number, one) in below.into_iter().enumerate() {
        if number == at {
            if one.is_object() && rng.random() {
                replace(rng, one, by);
            } else {
                *one = by.clone();
            }
        }
    }
}

/// The same in chunks.
fn chunked(rng: &mut StdRng, mut request: Request) -> Vec<u8> {
    let body = request.body.take().unwrap_or_default();
    request.header("transfer-encoding", "chunked");
    let mut bytes = request.bytes();
    for chunk in body.chunks(rng.random_range(1..64)) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}
