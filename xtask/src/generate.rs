//! `cargo xtask generate`: the files in the repository that a program writes.
//!
//! A generator is an example of the crate that knows the content. It writes its file; with `--check` it writes nothing,
//! and fails with a message if the file differs. To add one, write the example and add a line to [`GENERATORS`].
//! [`console`] generates the files of the web console.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{cargo, console};

struct Generator {
    /// Path of the generated file, relative to the workspace's root.
    path: &'static str,
    package: &'static str,
    example: &'static str,
}

const GENERATORS: &[Generator] = &[
    Generator {
        path: "crates/events/src/generated/earshot.events.v1.rs",
        package: "events",
        example: "generate",
    },
    Generator {
        path: "docs/operations/configuration.md",
        package: "runtime",
        example: "config-reference",
    },
    Generator {
        path: "crates/store/src/schema.rs",
        package: "store",
        example: "schema",
    },
];

/// The folder that `console/scripts/generate.mjs` writes.
const CONSOLE: &str = "console/dist";

pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let mut failed = Vec::new();
    // Built together for the whole workspace: dependencies have the same features as in the build of the tests, and are
    // built only once.
    let built = cargo::command()
        .args(["build", "--quiet", "--workspace"])
        .args(
            GENERATORS
                .iter()
                .flat_map(|generator| ["--example", generator.example]),
        )
        .status()
        .context("run cargo")?;
    ensure!(built.success(), "the generators do not build");
    let examples = cargo::target_dir()?.join("debug").join("examples");
    for generator in GENERATORS {
        let mut command = Command::new(examples.join(generator.example));
        if check {
            command.arg("--check");
        }
        let status = command
            .status()
            .with_context(|| format!("run `{}` of {}", generator.example, generator.package))?;
        match (status.success(), check) {
            (true, true) => println!("{} is up to date", generator.path),
            (true, false) => println!("wrote {}", generator.path),
            (false, _) => failed.push(generator.path),
        }
    }
    // The console's own tools print the files that differ.
    if console::generate(check)? {
        println!("{CONSOLE} is up to date");
    } else {
        failed.push(CONSOLE);
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let problem = if check {
        "not up to date, run `cargo xtask generate`"
    } else {
        "not written"
    };
    for path in failed {
        eprintln!("error: {path}: {problem}");
    }
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generated_file_and_its_generator_exist() {
        for generator in GENERATORS {
            assert!(
                cargo::root().join(generator.path).is_file(),
                "{}",
                generator.path
            );
            let example = format!(
                "crates/{}/examples/{}.rs",
                generator.package, generator.example
            );
            assert!(cargo::root().join(&example).is_file(), "{example}");
        }
    }
}
