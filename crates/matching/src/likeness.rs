//! Detects cross-posts: posts that say the same, by their link or by near-identical text.
//!
//! A post has up to [`MAX_KEYS`] keys, which an index stores. Two posts with the same link key are duplicates. If they
//! share another key, their [`Sketch`]es are compared.
//!
//! - Links are the post's own address, and the first one in its text that is more than a site's front page. Scheme,
//!   `www.`, fragment, trailing slash and tracking parameters (`utm_…`) are ignored.
//! - The text, title first and without its links, is treated as the set of its pairs of neighbouring words, folded. A
//!   sketch is 32 minimums over that set (MinHash), so the share of equal minimums estimates the overlap of two sets.
//!   Eight keys of four minimums each find texts with a large overlap. Texts of fewer than [`MIN_WORDS`] words have
//!   none: many people say "any news?".
//!
//! One changed word in forty leaves an overlap of nine tenths. With at least [`ALIKE`] of 32 equal minimums, texts
//! count as near-identical: of two texts that share half of their pairs, fewer than one in a hundred pass.
//!
//! Cost: about 0.2 ms for a text of 2,000 words; longer texts are cut there.

use domain::{Post, web_url::has_long_host};
use sha2::{Digest, Sha256};
use url::Url;

use crate::text;

/// Maximum number of keys of a post.
pub const MAX_KEYS: usize = BANDS + 2;
/// Minimum number of words; a shorter text is not compared.
pub const MIN_WORDS: usize = 6;
/// Texts with at least this many equal minimums are near-identical.
pub const ALIKE: usize = 24;

const MINIMUMS: usize = 32;
const BANDS: usize = 8;
const ROWS: usize = MINIMUMS / BANDS;
const MAX_WORDS: usize = 2_000;
const MAX_CHARS: usize = 40_000;
const MAX_LINK_BYTES: usize = 2_048;
/// Query parameters that track the visitor and do not change the page.
const VISITS: [&str; 10] = [
    "fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "igsh", "ref_src", "si",
];

/// Keys and sketch of a post, for finding others that say the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Likeness {
    /// Hashes of the post's links. Two posts with one in common are near-duplicates.
    pub links: Vec<i64>,
    /// Hashes of the text. If two posts have one in common, their sketches are compared.
    pub bands: Vec<i64>,
    pub sketch: Option<Sketch>,
}

/// MinHash sketch of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch([u16; MINIMUMS]);

impl Sketch {
    /// Returns whether the texts are near-identical.
    pub fn is_like(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.filter(|(own, other)| own == other).count() >= ALIKE
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|minimum| minimum.to_be_bytes())
            .collect()
    }

    /// Decodes the result of [`Sketch::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let minimums: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
        let minimums = minimums.try_into().ok()?;
        rest.is_empty().then_some(Self(minimums))
    }
}

impl Likeness {
    pub fn of(post: &Post) -> Self {
        let said = [post.title.as_deref(), post.text.as_deref()];
        let said: Vec<&str> = said.into_iter().flatten().map(bounded).collect();
        let mut links: Vec<i64> = own_link(post)
            .into_iter()
            .chain(first_link(&said))
            .collect();
        links.dedup();
        let Some(minimums) = minimums(&said) else {
            return Self {
                links,
                ..Self::default()
            };
        };
        let bands = minimums.chunks(ROWS).zip(0_u8..).map(|(rows, band)| {
            let rows = rows.iter().flat_map(|minimum| minimum.to_be_bytes());
            key(&[b"text", &[band], &rows.collect::<Vec<u8>>()])
        });
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a part of a hash is one too"
        )]
        let sketch = Sketch(minimums.map(|minimum| minimum as u16));
        Self {
            links,
            bands: bands.collect(),
            sketch: Some(sketch),
        }
    }

    /// Returns all keys of the post.
    pub fn keys(&self) -> impl Iterator<Item = i64> {
        self.links.iter().chain(&self.bands).copied()
    }
}

/// Returns the post's address, unless it is only that of its feed or its author.
fn own_link(post: &Post) -> Option<i64> {
    let elsewhere = post.url != post.user.url
        && post
            .subforum
            .as_ref()
            .is_none_or(|subforum| subforum.url != post.url);
    elsewhere.then(|| link_key(&post.url)).flatten()
}

fn first_link(said: &[&str]) -> Option<i64> {
    let mut words = said.iter().flat_map(|text| text.split_whitespace());
    words.find_map(|word| {
        let at = word.find("https://").or_else(|| word.find("http://"))?;
        let closing = [')', ']', '>', '"', '\'', '.', ',', ';', ':', '!', '?'];
        link_key(word[at..].trim_end_matches(closing))
    })
}

/// Returns the key of an address that leads to more than a front page.
fn link_key(address: &str) -> Option<i64> {
    if address.len() > MAX_LINK_BYTES || has_long_host(address) {
        return None;
    }
    let url = Url::parse(address).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    let host = url.host_str()?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map_or_else(String::new, |port| port.to_string());
    let path = url.path().trim_end_matches('/');
    let visits = |name: &str| name.starts_with("utm_") || VISITS.contains(&name);
    let mut query: Vec<String> = url
        .query_pairs()
        .filter(|(name, _)| !visits(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    query.sort();
    if path.is_empty() && query.is_empty() {
        return None;
    }
    let query = query.join("&");
    let parts = [host, &port, path, &query];
    Some(key(&[
        b"link",
        parts[0].as_bytes(),
        parts[1].as_bytes(),
        parts[2].as_bytes(),
        parts[3].as_bytes(),
    ]))
}

/// Returns the minimums of the text's pairs of words; `None` for a text that is too short.
fn minimums(said: &[&str]) -> Option<[u64; MINIMUMS]> {
    let mut hashes: Vec<u64> = Vec::new();
    for part in said {
        for piece in part
            .split_whitespace()
            .filter(|piece| !piece.contains("://"))
        {
            let words = text::words(piece).map(|word| hash(word.text.as_bytes()));
            hashes.extend(words);
        }
        if hashes.len() >= MAX_WORDS {
            hashes.truncate(MAX_WORDS);
            break;
        }
    }
    if hashes.len() < MIN_WORDS {
        return None;
    }
    let mut minimums = [u64::MAX; MINIMUMS];
    for pair in hashes.windows(2) {
        let pair = mix(pair[0].rotate_left(1) ^ mix(pair[1]));
        let mut seed = 0_u64;
        for minimum in &mut minimums {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            *minimum = (*minimum).min(mix(pair ^ seed));
        }
    }
    Some(minimums)
}

fn bounded(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_CHARS);
    end.map_or(text, |(end, _)| &text[..end])
}

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The last step of SplitMix64: every bit depends on every bit.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

fn key(parts: &[&[u8]]) -> i64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    i64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests;
