//! Completions and manual pages, generated from the command line definition.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::customer::{Failure, print};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell, such as `bash`: `source <(earshot completions bash)`.
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page per command, `earshot-….1`, to this directory, instead of printing the first page.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn completions(arguments: &Completions) -> ExitCode {
    let mut text = Vec::new();
    let mut command = crate::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "earshot", &mut text);
    crate::customer::finish(print(&String::from_utf8_lossy(&text)))
}

pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let command = crate::Arguments::command();
    match &arguments.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            clap_mangen::generate_to(command, directory)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(())
}
