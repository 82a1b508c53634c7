//! The scenarios against `earshot dev`: one process.

fn main() -> std::process::ExitCode {
    tests_e2e::run(tests_e2e::Kind::Dev)
}
