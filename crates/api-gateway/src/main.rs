//! The `api-gateway` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    runtime::service_main("api-gateway", api_gateway::run)
}
