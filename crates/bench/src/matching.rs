//! Posts decided on a second.

use anyhow::{Result, bail};

use crate::report::Report;

#[derive(clap::Args)]
pub(crate) struct Options {}

pub(crate) fn run(_: &Options) -> Result<Report> {
    bail!("this bench is not written yet")
}
