//! `cargo run --release -p manager-compiler --example evaluate -- --customers DIR --posts FILE [--focus F] [--sensitivity S]`
//!
//! Prints one prediction per line.

use std::{
    io::{BufWriter, Write, stdout},
    path::PathBuf,
};

use domain::{Focus, Sensitivity};
use manager_compiler::evaluate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut customers, mut posts, mut focus) = (None, None, None);
    let mut sensitivity = Sensitivity::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("an option without a value")?;
        match argument.as_str() {
            "--customers" => customers = Some(PathBuf::from(value)),
            "--posts" => posts = Some(PathBuf::from(value)),
            "--focus" => focus = Focus::ALL.into_iter().find(|focus| focus.as_str() == value),
            "--sensitivity" => {
                let known = Sensitivity::ALL
                    .into_iter()
                    .find(|one| one.as_str() == value);
                sensitivity = known.ok_or("--sensitivity is PRECISE, BALANCED or BROAD")?;
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let customers = customers.ok_or("--customers is missing")?;
    let posts = posts.ok_or("--posts is missing")?;
    let mut out = BufWriter::new(stdout().lock());
    let skipped = evaluate::run(&customers, &posts, focus, sensitivity, |prediction| {
        serde_json::to_writer(&mut out, &prediction)?;
        out.write_all(b"\n")
    })?;
    for customer in skipped {
        eprintln!("warning: {customer}");
    }
    Ok(out.flush()?)
}
