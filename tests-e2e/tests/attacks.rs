//! Attacks of one account on another. Nearly all worked on an early version.

fn main() -> std::process::ExitCode {
    tests_e2e::run_attacks()
}
