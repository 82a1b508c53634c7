//! Bodies that are not JSON, or JSON of a wrong shape.

use rand::{Rng, rngs::StdRng};
use serde_json::{Value, json};

use super::{
    Generator, Operation,
    luck::{bytes, pick},
    request::Request,
};

impl Generator {
    pub(super) fn bad_body(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
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
}

/// The object `good` with one more entry, given as text that need not be JSON.
fn with(good: &Value, key: &str, text: &str) -> String {
    let good = good.to_string();
    let rest = good.strip_prefix('{').unwrap_or("}");
    let comma = if rest == "}" { "" } else { "," };
    format!("{{\"{key}\":{text}{comma}{rest}")
}

/// `good`, damaged until it is not JSON any more.
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

/// `good` with values of wrong types and an unknown field.
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

/// The same body in chunks.
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
