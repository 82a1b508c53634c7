//! The programs under test.

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// Path of another `earshot` to test, such as one of an earlier commit.
const OTHER_EARSHOT: &str = "EARSHOT_BINARY";

/// Returns the path of a program of the workspace, built in the same profile: two directories above this test program.
///
/// A missing program fails the test, because a suite that skips its tests proves nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
pub(crate) fn path(name: &str) -> PathBuf {
    if name == "earshot"
        && let Some(other) = std::env::var_os(OTHER_EARSHOT)
    {
        return other.into();
    }
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

/// Returns the program's command without the settings of the user who runs the tests.
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

/// Result of a program that must end by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Returns all output.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs a program until it ends, which must happen `within` that time.
pub(crate) fn finish(command: &mut Command, within: Duration) -> Ended {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let (ended, has_ended) = mpsc::channel();
    // Waits concurrently with reading the output; a program whose output is not read would block.
    let waiting = std::thread::spawn(move || {
        let late = has_ended.recv_timeout(within).is_err();
        if late {
            let _ = kill(id, Signal::SIGKILL);
        }
        late
    });
    let output = child.wait_with_output().unwrap();
    let _ = ended.send(());
    let output = text(output);
    assert!(
        !waiting.join().unwrap(),
        "{command:?} did not end within {within:?}: {output:#?}"
    );
    output
}

fn text(output: Output) -> Ended {
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
