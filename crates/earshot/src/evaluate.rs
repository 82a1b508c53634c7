//! `earshot evaluate`: how well pages are compiled and posts are matched, without database or network.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use domain::Focus;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Customers as JSON files: `id, name, pages, competitors, foci`; pages relative to DIR's parent.
    #[arg(long, value_name = "DIR")]
    customers: PathBuf,
    /// Posts as JSON lines, gzipped or not: `id, source, channel, title, text`.
    #[arg(long, value_name = "FILE")]
    posts: PathBuf,
    /// Only this focus.
    #[arg(long)]
    focus: Option<FocusWord>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "UPPER")]
enum FocusWord {
    Sales,
    Competitor,
    Crisis,
}

impl From<FocusWord> for Focus {
    fn from(word: FocusWord) -> Self {
        match word {
            FocusWord::Sales => Self::Sales,
            FocusWord::Competitor => Self::Competitor,
            FocusWord::Crisis => Self::Crisis,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let focus = arguments.focus.map(Focus::from);
    manager_compiler::evaluate::run(
        &arguments.customers,
        &arguments.posts,
        focus,
        |prediction| {
            serde_json::to_writer(&mut out, &prediction)?;
            out.write_all(b"\n")
        },
    )?;
    out.flush()?;
    Ok(())
}
