//! The scenarios against the four services, a PostgreSQL and a RabbitMQ.

fn main() -> std::process::ExitCode {
    tests_e2e::run(tests_e2e::Kind::Distributed)
}
