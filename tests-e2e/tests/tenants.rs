//! Two accounts with random operations: neither sees anything of the other.

fn main() -> std::process::ExitCode {
    tests_e2e::run_tenants()
}
