//! `cargo run -p compiling --example show -- SALES|COMPETITOR|CRISIS PAGE.html…` prints the
//! instructions that pages on disk compile to.

use compiling::compile::{FetchedPage, compile};
use domain::{Focus, Sensitivity};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let focus = arguments.next().unwrap_or_default();
    let focus = Focus::ALL
        .into_iter()
        .find(|f| f.as_str() == focus)
        .ok_or("no such focus")?;
    let mut pages = Vec::new();
    for path in arguments {
        pages.push(FetchedPage {
            url: "http://192.0.2.1/page".parse()?,
            content_type: None,
            body: std::fs::read(path)?,
        });
    }
    let instructions = compile(&pages, focus, Sensitivity::Balanced, &[], "FORUM", &[])?;
    println!("{}", serde_json::to_string_pretty(&instructions)?);
    Ok(())
}
