//! The tests of one program, and how they are given to the runner.
//!
//! cargo-nextest runs each test in a process of its own. Tests that share a service are one test for it, because starting
//! all services takes longer than most of these tests.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

use libtest_mimic::{Arguments, Failed, Trial};

pub(crate) struct Test {
    name: String,
    shares_a_service: bool,
    run: Box<dyn FnOnce() + Send>,
}

impl Test {
    /// A test that shares a service with others of this program.
    pub(crate) fn sharing(name: String, run: impl FnOnce() + Send + 'static) -> Self {
        Self {
            name,
            shares_a_service: true,
            run: Box::new(run),
        }
    }

    /// A test that needs no service, or starts a separate one.
    pub(crate) fn alone(name: String, run: impl FnOnce() + Send + 'static) -> Self {
        Self {
            shares_a_service: false,
            ..Self::sharing(name, run)
        }
    }

    fn run(self) {
        let begin = Instant::now();
        (self.run)();
        print!("({:.1?}) ", begin.elapsed());
    }

    fn trial(self) -> Trial {
        Trial::test(self.name.clone(), move || {
            self.run();
            Ok(())
        })
    }
}

/// Runs the tests of a program in sequence: several of them keep the machine busy, and the last ones kill what others need.
pub(crate) fn run(program: &str, tests: Vec<Test>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = if is_nextest() {
        grouped(program, tests)
    } else {
        tests.into_iter().map(Test::trial).collect()
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

#[expect(clippy::disallowed_methods, reason = "the runner's own variable")]
fn is_nextest() -> bool {
    std::env::var_os("NEXTEST").is_some()
}

fn grouped(program: &str, tests: Vec<Test>) -> Vec<Trial> {
    let (sharing, alone): (Vec<_>, Vec<_>) =
        tests.into_iter().partition(|test| test.shares_a_service);
    let together = Trial::test(format!("{program}::on_one_service"), move || {
        let mut failed = Vec::new();
        for test in sharing {
            let name = test.name.clone();
            println!("test {name}");
            if catch_unwind(AssertUnwindSafe(|| test.run())).is_err() {
                failed.push(name);
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(Failed::from(failed.join(", ")))
        }
    });
    let alone = alone.into_iter().map(Test::trial);
    alone.chain([together]).collect()
}
