//! The programs under test.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// A program of the workspace: built in the same profile, two directories above this test program.
///
/// A missing one fails the test, since a suite that skips tells nothing.
pub(crate) fn path(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let profile = own.ancestors().nth(2).unwrap();
    let program = profile.join(name);
    let option = if profile.ends_with("release") {
        " --release"
    } else {
        ""
    };
    assert!(
        program.is_file(),
        "{} is missing: build it with `cargo build --workspace{option}`",
        program.display()
    );
    program
}

/// The program without the settings of whoever runs the tests.
pub(crate) fn command(name: &str) -> Command {
    let mut command = Command::new(path(name));
    command.stdin(Stdio::null());
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        let ours = text.starts_with("EARSHOT_") || text.starts_with("OTEL_");
        if ours || text == "DATABASE_URL" || text == "AMQP_URL" {
            command.env_remove(&variable);
        }
    }
    command
}

/// How a program ended that should end by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// All that it said.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a program to its end, which must come `within` that time.
pub(crate) fn finish(command: &mut Command, within: Duration) -> Ended {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > within {
            child.kill().unwrap();
            let output = text(child.wait_with_output().unwrap());
            panic!("{command:?} did not end within {within:?}: {output:#?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    text(child.wait_with_output().unwrap())
}

fn text(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
