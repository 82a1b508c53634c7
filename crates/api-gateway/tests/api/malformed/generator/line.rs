//! Invalid targets and methods, and input that is not HTTP.

use rand::{Rng, rngs::StdRng};

use super::{
    Generator,
    luck::{bytes, encoded, pick, word},
};

impl Generator {
    pub(super) fn bad_target(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
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

    pub(super) fn no_http(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
        let path = &self.any(rng).path;
        let key = &self.key;
        let bearer = format!("authorization: Bearer {key}");
        let (kind, mut bytes) = match rng.random_range(0..6) {
            0 => {
                let length = rng.random_range(1..400);
                let mut junk = bytes(rng, length);
                // A server ignores an empty line before a request (RFC 9112 2.2).
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
