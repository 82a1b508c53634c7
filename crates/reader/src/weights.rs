//! The weights file: `earread1`, the SHA-256 of what follows, then vocabulary and model, each after its length as a
//! little-endian `u32`.
//!
//! The checksum finds a file that was cut off or damaged on the way. It does not prove who wrote the file.

use std::{fs::File, io, io::Read, path::Path};

use sha2::{Digest, Sha256};

const FORMAT: &[u8; 7] = b"earread";
const VERSION: u8 = b'1';
const HEADER: usize = FORMAT.len() + 1 + CHECKSUM;
const CHECKSUM: usize = 32;
/// Larger files are refused before they are read: memory must stay bounded whatever the path names.
const MAX_BYTES: u64 = 64 << 20;

/// Reason why a weights file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot read the weights of the reader: {0}")]
    Unreadable(#[from] io::Error),
    #[error("the weights of the reader are larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    #[error("not a weights file of the reader: it does not start with `earread`")]
    OtherFormat,
    #[error("the weights of the reader have format version {0:?}, this release reads {expected:?}", expected = char::from(VERSION))]
    OtherVersion(char),
    #[error("the weights of the reader are damaged: the checksum differs. Copy the file again")]
    Damaged,
    #[error("the weights of the reader cannot be loaded: {0}")]
    Unusable(String),
}

/// Contents of a weights file whose checksum is right.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) vocabulary: String,
    pub(crate) model: Vec<u8>,
    pub(crate) checksum: [u8; CHECKSUM],
}

impl Weights {
    pub(crate) fn read(path: &Path) -> Result<Self, OpenError> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)?;
        Self::parse(&bytes)
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(OpenError::TooLarge);
        }
        let rest = bytes.strip_prefix(FORMAT).ok_or(OpenError::OtherFormat)?;
        match rest.first() {
            Some(&VERSION) => {}
            Some(other) => return Err(OpenError::OtherVersion(char::from(*other))),
            None => return Err(OpenError::Damaged),
        }
        let (Some(checksum), Some(body)) = (
            rest.get(1..=CHECKSUM)
                .and_then(|checksum| checksum.try_into().ok()),
            bytes.get(HEADER..),
        ) else {
            return Err(OpenError::Damaged);
        };
        if <[u8; CHECKSUM]>::from(Sha256::digest(body)) != checksum {
            return Err(OpenError::Damaged);
        }
        let (vocabulary, body) = part(body)?;
        let (model, _) = part(body)?;
        let vocabulary = str::from_utf8(vocabulary)
            .map_err(|error| OpenError::Unusable(format!("vocabulary: {error}")))?;
        Ok(Self {
            vocabulary: vocabulary.to_owned(),
            model: model.to_vec(),
            checksum,
        })
    }
}

/// Splits off a part that follows its length.
fn part(bytes: &[u8]) -> Result<(&[u8], &[u8]), OpenError> {
    let (length, rest) = bytes.split_first_chunk().ok_or(OpenError::Damaged)?;
    usize::try_from(u32::from_le_bytes(*length))
        .ok()
        .and_then(|length| rest.split_at_checked(length))
        .ok_or(OpenError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn parse_returns_both_parts() {
        let weights = Weights::parse(&file(&body())).unwrap();
        assert_eq!(
            (weights.vocabulary.as_str(), &weights.model[..]),
            ("{}\n", &b"ab"[..])
        );
    }

    #[test]
    fn parse_refuses_a_file_that_was_cut_off() {
        let file = file(&body());
        for length in 0..file.len() {
            let error = Weights::parse(&file[..length]).unwrap_err();
            assert!(
                matches!(error, OpenError::Damaged | OpenError::OtherFormat),
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
            assert!(Weights::parse(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn parse_names_the_other_version() {
        let mut other = file(&body());
        other[7] = b'2';
        let error = Weights::parse(&other).unwrap_err().to_string();
        assert!(error.contains("'2'") && error.contains("'1'"), "{error}");
    }

    #[test]
    fn parse_refuses_a_length_beyond_the_end() {
        let body = [&u32::MAX.to_le_bytes()[..], b"ab"].concat();
        assert!(matches!(
            Weights::parse(&file(&body)),
            Err(OpenError::Damaged)
        ));
    }

    #[test]
    fn read_names_a_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = Weights::read(&folder.path().join("encoder.bin")).unwrap_err();
        assert!(matches!(error, OpenError::Unreadable(_)), "{error}");
    }
}
