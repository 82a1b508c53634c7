//! List parameters with invalid values, and unknown parameters.

use rand::{Rng, rngs::StdRng};

use super::{
    Generator, Operation,
    luck::{bytes, encoded, pick, word},
};

impl Generator {
    pub(super) fn bad_query(&self, rng: &mut StdRng) -> (&'static str, Vec<u8>) {
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
                // Cut off at a random place.
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
}
