//! Faults from random seeds, on the four services with several replicas of each.

fn main() -> std::process::ExitCode {
    tests_e2e::run_faults()
}
