//! `cargo run --release -p reader --example vectors -- WEIGHTS < TEXTS > VECTORS`
//!
//! Reads a JSON array of sentences per line. Writes for each the number of vectors as a little-endian `u32`, then the
//! vectors as `f32`: that of the whole, then one per sentence. A sentence without tokens has zeros.
//!
//! Training uses it, so that a layer is fitted to the very numbers that the product computes.

use std::{
    io::{BufWriter, Write, stdin, stdout},
    path::Path,
};

use reader::{DIMENSIONS, Encoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weights = std::env::args().nth(1).ok_or("usage: vectors WEIGHTS")?;
    let encoder = Encoder::open(Path::new(&weights))?;
    let mut out = BufWriter::new(stdout().lock());
    for line in stdin().lines() {
        let sentences: Vec<String> = serde_json::from_str(&line?)?;
        let reading = encoder.read(sentences.iter().map(String::as_str))?;
        let count = u32::try_from(1 + reading.sentences.len())?;
        out.write_all(&count.to_le_bytes())?;
        for vector in [Some(reading.whole)].into_iter().chain(reading.sentences) {
            let values = vector.map_or([0.0; DIMENSIONS], |vector| *vector.values());
            for value in values {
                out.write_all(&value.to_le_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}
