//! The tests of one program, and how they are given to the runner.
//!
//! cargo-nextest runs each test in a separate process. Tests that share a service are one test for it, named after that
//! service, because starting all services takes longer than most of these tests.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::Instant,
};

use libtest_mimic::{Arguments, Failed, Trial};

const ONE_SERVICE: &str = "on_one_service";

pub(crate) struct Test {
    name: String,
    /// The service that it shares with others.
    service: Option<&'static str>,
    run: Box<dyn FnOnce() + Send>,
}

impl Test {
    /// A test that shares a service with others of this program.
    pub(crate) fn sharing(name: String, run: impl FnOnce() + Send + 'static) -> Self {
        Self::sharing_another(ONE_SERVICE, name, run)
    }

    /// A test that shares another service of this program.
    pub(crate) fn sharing_another(
        service: &'static str,
        name: String,
        run: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self {
            name,
            service: Some(service),
            run: Box::new(run),
        }
    }

    /// A test that needs no service, or starts a separate one.
    pub(crate) fn alone(name: String, run: impl FnOnce() + Send + 'static) -> Self {
        Self {
            service: None,
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
    let mut trials = Vec::new();
    let mut sharing: BTreeMap<&str, Vec<Test>> = BTreeMap::new();
    for test in tests {
        match test.service {
            Some(service) => sharing.entry(service).or_default().push(test),
            None => trials.push(test.trial()),
        }
    }
    let sharing = sharing.into_iter().map(|(service, tests)| {
        Trial::test(format!("{program}::{service}"), move || run_all(tests))
    });
    trials.extend(sharing);
    trials
}

fn run_all(tests: Vec<Test>) -> Result<(), Failed> {
    let mut failed = Vec::new();
    for test in tests {
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
}
