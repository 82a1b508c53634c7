//! Keys and headers.

use rand::{Rng, rngs::StdRng};
use serde_json::json;

use super::{
    Generator,
    luck::{bytes, pick},
};

impl Generator {
    pub(super) fn bad_token(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let operation = self.any(rng);
        let mut request = self.request(operation);
        let (_, good) = request.headers.remove(0);
        let (scheme, good) = good.split_at("Bearer ".len());
        let mut token = good.to_vec();
        match rng.random_range(0..7) {
            0 => token.truncate(rng.random_range(0..good.len())),
            1 => {
                // Some bits of the last base64 character are not used.
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

    pub(super) fn bad_header(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
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
}
