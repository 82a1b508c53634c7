//! Limit on the head of an HTTP/1 request. actix allows 128 KiB, for each connection of anyone.
//!
//! A head is whole only when its last byte arrives, so this follows where heads begin and end in what a client sends.
//! It checks nothing else: after anything that it does not understand it stops, because actix refuses the request.

/// Maximum bytes of a head.
pub(crate) const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Maximum bytes that are kept of a line: enough for each header that says how long the body is, without spaces.
const MAX_LINE_BYTES: usize = 64;

/// Part of a request that the next byte belongs to.
#[derive(Clone, Copy)]
enum Part {
    Head {
        bytes: usize,
    },
    Body {
        bytes: u64,
    },
    ChunkSize,
    /// Ends with a line break, which counts.
    Chunk {
        bytes: u64,
    },
    Trailers {
        bytes: usize,
    },
    Unknown,
}

/// How the body after the current head ends.
#[derive(Clone, Copy)]
enum Framing {
    Length(u64),
    Chunks,
    Unknown,
}

pub(crate) struct Heads {
    part: Part,
    /// Start of the current line and its last byte, in lower case and without spaces and carriage returns.
    line: Vec<u8>,
    has_request_line: bool,
    /// HTTP/1.0 has no chunks.
    has_chunks: bool,
    framing: Framing,
}

impl Heads {
    pub(crate) fn new() -> Self {
        Self {
            part: Part::Head { bytes: 0 },
            line: Vec::with_capacity(MAX_LINE_BYTES),
            has_request_line: false,
            has_chunks: true,
            framing: Framing::Length(0),
        }
    }

    /// Follows `bytes`, which the client sent. Returns the position of the first byte that makes a head too large.
    pub(crate) fn excess(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match &mut self.part {
                Part::Body { bytes: left } | Part::Chunk { bytes: left } => {
                    let skipped = usize::try_from(*left).map_or(rest.len(), |n| n.min(rest.len()));
                    *left -= skipped as u64;
                    at += skipped;
                    match self.part {
                        Part::Body { bytes: 0 } => self.begin(),
                        Part::Chunk { bytes: 0 } => self.part = Part::ChunkSize,
                        _ => {}
                    }
                    continue;
                }
                Part::Head { bytes } | Part::Trailers { bytes } => {
                    *bytes += 1;
                    if *bytes > MAX_HEAD_BYTES {
                        return Some(at);
                    }
                }
                Part::ChunkSize => {}
                Part::Unknown => return None,
            }
            match rest[0] {
                b'\n' => {
                    self.end_line();
                    self.line.clear();
                }
                b'\r' | b' ' | b'\t' => {}
                byte => {
                    self.line.truncate(MAX_LINE_BYTES - 1);
                    self.line.push(byte.to_ascii_lowercase());
                }
            }
            at += 1;
        }
        None
    }

    fn begin(&mut self) {
        self.part = Part::Head { bytes: 0 };
        self.has_request_line = false;
        self.framing = Framing::Length(0);
    }

    fn end_line(&mut self) {
        match self.part {
            Part::Head { .. } if !self.line.is_empty() => {
                if !self.has_request_line {
                    self.has_request_line = true;
                    self.has_chunks = !self.line.ends_with(b"0");
                } else if let Some(framing) = framing(&self.line, self.has_chunks) {
                    self.framing = framing;
                }
            }
            // Empty lines before a request are ignored, and are kept until it is whole.
            Part::Head { .. } if self.has_request_line => match self.framing {
                Framing::Length(0) => self.begin(),
                Framing::Length(bytes) => self.part = Part::Body { bytes },
                Framing::Chunks => self.part = Part::ChunkSize,
                Framing::Unknown => self.part = Part::Unknown,
            },
            Part::ChunkSize => {
                self.part = match chunk_size(&self.line) {
                    Some(0) => Part::Trailers { bytes: 0 },
                    // With the line break after it.
                    Some(bytes) => Part::Chunk { bytes: bytes + 2 },
                    None => Part::Unknown,
                }
            }
            Part::Trailers { .. } if self.line.is_empty() => self.begin(),
            _ => {}
        }
    }
}

/// Returns what the header in `line` says about the body, if anything.
fn framing(line: &[u8], has_chunks: bool) -> Option<Framing> {
    let line = std::str::from_utf8(line).ok()?;
    match line.split_once(':')? {
        ("content-length", length) => {
            Some(length.parse().map_or(Framing::Unknown, Framing::Length))
        }
        ("transfer-encoding", "chunked") => has_chunks.then_some(Framing::Chunks),
        _ => None,
    }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    let (size, _extension) = line.split_once(';').unwrap_or((line, ""));
    u64::from_str_radix(size, 16)
        .ok()
        .filter(|size| *size < u64::MAX - 2)
}

#[cfg(test)]
mod tests {
    use super::{Heads, MAX_HEAD_BYTES};

    /// Returns the position of the excess, for bytes that arrive in pieces of any size.
    fn excess(sent: &str) -> Option<usize> {
        let whole = Heads::new().excess(sent.as_bytes());
        for size in [1, 7, 1_000] {
            let mut heads = Heads::new();
            let mut pieces = sent.as_bytes().chunks(size).enumerate();
            let at = pieces.find_map(|(n, piece)| Some(n * size + heads.excess(piece)?));
            assert_eq!(at, whole, "pieces of {size}");
        }
        whole
    }

    fn head_of(bytes: usize, headers: &str) -> String {
        let head = format!("GET / HTTP/1.1\r\n{headers}x: \r\n\r\n");
        head.replace("x: ", &format!("x: {}", "x".repeat(bytes - head.len())))
    }

    #[test]
    fn head_of_the_maximum_size_is_accepted() {
        let head = head_of(MAX_HEAD_BYTES, "");
        assert_eq!(excess(&head), None);
        assert_eq!(excess(&head.repeat(3)), None);
        let large = head_of(MAX_HEAD_BYTES + 1, "");
        assert_eq!(excess(&large), Some(MAX_HEAD_BYTES));
        assert_eq!(
            excess(&(head.clone() + &large)),
            Some(head.len() + MAX_HEAD_BYTES)
        );
    }

    #[test]
    fn bodies_are_not_heads() {
        let large = head_of(MAX_HEAD_BYTES + 1, "");
        let body = "x".repeat(100_000);
        for first in [
            format!("{}{body}", head_of(200, "Content-Length: 100000\r\n")),
            format!(
                "{}186A0;x=y\r\n{body}\r\n1\r\n\n\r\n0\r\ntrailer: x\r\n\r\n",
                head_of(200, "transfer-encoding: Chunked\r\n")
            ),
        ] {
            assert_eq!(excess(&first.repeat(2)), None);
            let both = format!("{first}{large}");
            assert_eq!(excess(&both), Some(first.len() + MAX_HEAD_BYTES));
        }
    }

    #[test]
    fn unusual_spelling_of_the_framing_hides_no_head() {
        let large = head_of(MAX_HEAD_BYTES + 1, "");
        let (spaces, zeros) = (" ".repeat(100), "0".repeat(100));
        for headers in [
            format!("content-length:{spaces}0\r\n"),
            format!("content-length: {zeros}\r\n"),
            "transfer-encoding: identity\r\n".to_owned(),
        ] {
            let first = head_of(1_000, &headers);
            let both = format!("{first}{large}");
            assert_eq!(excess(&both), Some(first.len() + MAX_HEAD_BYTES));
        }
        let first = head_of(200, "transfer-encoding: chunked\r\n").replace("P/1.1", "P/1.0");
        let both = format!("{first}{large}");
        assert_eq!(excess(&both), Some(first.len() + MAX_HEAD_BYTES));
        let first = head_of(200, &format!("transfer-encoding:{spaces}chunked\r\n"));
        let both = format!("{first}0\r\n\r\n{large}");
        assert_eq!(excess(&both), Some(both.len() - 1));
    }

    #[test]
    fn empty_lines_before_a_request_count() {
        assert_eq!(excess(&"\r\n".repeat(9_000)), Some(MAX_HEAD_BYTES));
        let head = head_of(MAX_HEAD_BYTES - 2, "").replace("\r\n", "\n");
        assert_eq!(excess(&format!("\r\n{head}")), None);
    }

    #[test]
    fn trailers_count_as_a_head() {
        let start = format!("{}0\r\n", head_of(200, "transfer-encoding: chunked\r\n"));
        let sent = format!("{start}x: {}", "x".repeat(20_000));
        assert_eq!(excess(&sent), Some(start.len() + MAX_HEAD_BYTES));
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_parser() {
        let rest = "x".repeat(100_000);
        for headers in [
            "content-length: -1\r\n",
            "content-length: 99999999999999999999\r\n",
        ] {
            assert_eq!(excess(&format!("{}{rest}", head_of(200, headers))), None);
        }
        let chunks = head_of(200, "transfer-encoding: chunked\r\n");
        for size in ["", "x", "ffffffffffffffff", "-1"] {
            assert_eq!(excess(&format!("{chunks}{size}\r\n{rest}")), None, "{size}");
        }
    }
}
