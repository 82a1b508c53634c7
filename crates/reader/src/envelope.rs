//! The form of the reader's files: seven letters of format and a digit of version, the SHA-256 of what follows, then
//! parts, each after its length as a little-endian `u32`.
//!
//! The checksum finds a file that was cut off or damaged on the way. It does not prove who wrote the file.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

const VERSION: u8 = b'1';
const CHECKSUM: usize = 32;
const LENGTH: usize = size_of::<u32>();
/// Larger files are refused before they are read: memory must stay bounded for any path.
const MAX_BYTES: u64 = 64 << 20;

/// Seven letters that a file starts with.
pub(crate) type Format = [u8; 7];

/// File of the reader that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the reader's file `{}` {problem}", path.display())]
pub struct OpenError {
    pub path: PathBuf,
    #[source]
    pub problem: Problem,
}

impl Problem {
    pub(crate) fn of(self, path: &Path) -> OpenError {
        OpenError {
            path: path.to_owned(),
            problem: self,
        }
    }
}

/// Reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    #[error("is of another kind: it does not start with `{0}`")]
    OtherFormat(&'static str),
    #[error("has format version {0:?}, this release reads {expected:?}", expected = char::from(VERSION))]
    OtherVersion(char),
    #[error("is damaged: the checksum differs. Copy the file again")]
    Damaged,
    #[error("belongs to encoder {expected}, not to {found}. Use files of one release")]
    OtherEncoder { expected: String, found: String },
    #[error("belongs to another release: its evidence differs from this release's at number {0}")]
    OtherEvidence(usize),
    #[error("cannot be loaded: {0}")]
    Unusable(String),
}

/// Contents of a file whose checksum is right.
#[derive(Debug)]
pub(crate) struct Contents<const PARTS: usize> {
    pub(crate) checksum: [u8; CHECKSUM],
    pub(crate) parts: [Vec<u8>; PARTS],
}

pub(crate) fn read<const PARTS: usize>(
    path: &Path,
    format: &'static Format,
) -> Result<Contents<PARTS>, Problem> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    parse(bytes, format)
}

fn parse<const PARTS: usize>(
    mut bytes: Vec<u8>,
    format: &'static Format,
) -> Result<Contents<PARTS>, Problem> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::TooLarge);
    }
    let other = || Problem::OtherFormat(str::from_utf8(format).unwrap_or_default());
    let rest = bytes.strip_prefix(format).ok_or_else(other)?;
    let (version, rest) = rest.split_first().ok_or(Problem::Damaged)?;
    if *version != VERSION {
        return Err(Problem::OtherVersion(char::from(*version)));
    }
    let (&checksum, body) = rest.split_first_chunk().ok_or(Problem::Damaged)?;
    if <[u8; CHECKSUM]>::from(Sha256::digest(body)) != checksum {
        return Err(Problem::Damaged);
    }
    let header = bytes.len() - body.len();
    bytes.drain(..header);
    let mut parts = [const { Vec::new() }; PARTS];
    if let Some((last, others)) = parts.split_last_mut() {
        for part in others {
            let end = LENGTH + length(&bytes)?;
            *part = bytes.drain(..end).skip(LENGTH).collect();
        }
        // The last part is the large one, so it is not copied.
        bytes.truncate(LENGTH + length(&bytes)?);
        bytes.drain(..LENGTH);
        *last = bytes;
    }
    Ok(Contents { checksum, parts })
}

/// Returns the length of the part that follows, which is there as a whole.
fn length(bytes: &[u8]) -> Result<usize, Problem> {
    let (length, rest) = bytes.split_first_chunk().ok_or(Problem::Damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok();
    length
        .filter(|length| *length <= rest.len())
        .ok_or(Problem::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &Format = b"earread";

    fn parse(bytes: &[u8]) -> Result<Contents<2>, Problem> {
        super::parse(bytes.to_vec(), FORMAT)
    }

    fn file(body: &[u8]) -> Vec<u8> {
        let mut file = b"earread1".to_vec();
        file.extend(Sha256::digest(body));
        file.extend(body);
        file
    }

    fn body() -> Vec<u8> {
        [
            &3_u32.to_le_bytes()[..],
            b"{}\n",
            &2_u32.to_le_bytes()[..],
            b"ab",
        ]
        .concat()
    }

    #[test]
    fn parse_returns_all_parts() {
        let contents = parse(&file(&body())).unwrap();
        assert_eq!(contents.parts, [b"{}\n".to_vec(), b"ab".to_vec()]);
    }

    #[test]
    fn parse_refuses_a_file_that_was_cut_off() {
        let file = file(&body());
        for length in 0..file.len() {
            let error = parse(&file[..length]).unwrap_err();
            assert!(
                matches!(error, Problem::Damaged | Problem::OtherFormat(_)),
                "{length}: {error}"
            );
        }
    }

    #[test]
    fn parse_refuses_every_changed_byte() {
        let good = file(&body());
        for at in 0..good.len() {
            let mut changed = good.clone();
            changed[at] ^= 1;
            assert!(parse(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn parse_names_the_other_version() {
        let mut other = file(&body());
        other[7] = b'2';
        let error = parse(&other).unwrap_err().to_string();
        assert!(error.contains("'2'") && error.contains("'1'"), "{error}");
    }

    #[test]
    fn parse_refuses_a_length_beyond_the_end() {
        let body = [&u32::MAX.to_le_bytes()[..], b"ab"].concat();
        assert!(matches!(parse(&file(&body)), Err(Problem::Damaged)));
    }
}
