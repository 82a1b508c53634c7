//! `cargo run --release -p compiling --example evidence -- CUSTOMERS_DIR POSTS`
//!
//! Prints the evidence of each pair of customer and post, one JSON array per line.

use std::{
    io::{BufWriter, Write, stdout},
    path::Path,
};

use compiling::evaluate;
use domain::Sensitivity;
use matching::{EVIDENCE, Evidence, PostText};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(customers), Some(posts)) = (arguments.next(), arguments.next()) else {
        return Err("usage: evidence CUSTOMERS_DIR POSTS".into());
    };
    let plans: Vec<_> =
        evaluate::Plans::compile(Path::new(&customers), None, Sensitivity::Balanced)?
            .into_iter()
            .collect();
    let mut out = BufWriter::new(stdout().lock());
    writeln!(out, "{}", serde_json::to_string(EVIDENCE)?)?;
    for post in evaluate::posts(Path::new(&posts))? {
        let (id, title, text) = post?;
        let post = PostText::new(
            Some(&title).filter(|t| !t.is_empty()).map(|t| t.as_str()),
            Some(&text),
        );
        for (customer, focus, plan) in &plans {
            if let Some(evidence) = Evidence::weigh(plan, &post) {
                let values = evidence.values().map(|v| (v * 1e4).round() / 1e4);
                writeln!(
                    out,
                    "{}",
                    serde_json::to_string(&(customer, focus, &id, &values[..]))?
                )?;
            }
        }
    }
    Ok(out.flush()?)
}
