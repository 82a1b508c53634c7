//! `earshot evaluate`: measures how well pages are compiled and posts are matched, without database or network.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use domain::Focus;
use reader::Reader;

use crate::customer::SensitivityWord;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Customers as JSON files: `id, name, pages, competitors, foci`; pages relative to DIR's parent.
    ///
    /// A page is a path, or an object with `path` and `url`; `urls` lists the addresses of all pages. A customer that
    /// cannot be compiled is reported and skipped.
    #[arg(long, value_name = "DIR")]
    customers: PathBuf,
    /// Posts as JSON lines, gzipped or not: `id, source, channel, title, text`.
    #[arg(long, value_name = "FILE")]
    posts: PathBuf,
    /// Only this focus.
    #[arg(long)]
    focus: Option<FocusWord>,
    /// Sensitivity for compiling the customers.
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    sensitivity: SensitivityWord,
    /// Let the reader decide on doubtful posts: the folder with encoder.bin and head.bin.
    #[arg(long, value_name = "DIR")]
    reader: Option<PathBuf>,
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
    let reader = arguments.reader.as_deref().map(Reader::in_folder);
    let reader = reader.transpose()?;
    let skipped = compiling::evaluate::run(
        &arguments.customers,
        &arguments.posts,
        focus,
        arguments.sensitivity.into(),
        reader.as_ref(),
        |prediction| {
            serde_json::to_writer(&mut out, &prediction)?;
            out.write_all(b"\n")
        },
    )?;
    out.flush()?;
    for customer in skipped {
        eprintln!("earshot: warning: {customer}; skipped");
    }
    Ok(())
}
