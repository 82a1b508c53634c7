//! The `main` of a service.

use std::{process::ExitCode, sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    Config, ConfigError, Context, Health,
    cli::Arguments,
    crypto, ops, shutdown,
    telemetry::{self, Output},
};

/// The whole `main` of a service: reads command line and configuration, starts logs, traces, the ops server and
/// signals, runs `run`, and gives it [`crate::config::Ops::grace_period`] to drain.
///
/// Exits with 0 after a drain in time, 1 if the configuration is wrong or the service failed, 2 after wrong
/// usage.
pub fn service_main<F, R>(service: &'static str, run: R) -> ExitCode
where
    R: FnOnce(Arc<Config>, Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let arguments = match Arguments::parse_for(service, std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let config = match arguments.load(service) {
        Ok(config) => Arc::new(config),
        Err(error) => {
            print_config_error(service, &error);
            return ExitCode::FAILURE;
        }
    };
    if arguments.check_config {
        return ExitCode::SUCCESS;
    }

    crypto::install();
    let telemetry = telemetry::init(service, &config.log, Output::Stdout);
    let outcome = start(service, &config, run);
    let code = match outcome {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!("stopped: {error:#}");
            ExitCode::FAILURE
        }
    };
    telemetry.shutdown();
    code
}

/// Prints the errors in a configuration to stderr, one per line.
pub fn print_config_error(program: &str, error: &ConfigError) {
    eprintln!("{program}: the configuration is wrong:\n{error}");
}

fn start<F, R>(service: &'static str, config: &Arc<Config>, run: R) -> anyhow::Result<()>
where
    R: FnOnce(Arc<Config>, Context) -> F,
    F: Future<Output = anyhow::Result<()>>,
{
    let shutdown = shutdown::on_signal()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let health = Health::new();
    let ops = ops::start(config.ops.listen, health.clone())?;
    tracing::info!(ops = %ops.address(), "started");
    let outcome = runtime.block_on(async {
        health.keep_beating();
        let context = Context {
            shutdown: shutdown.clone(),
            health: health.clone(),
            service,
        };
        drain(
            run(Arc::clone(config), context),
            &shutdown,
            &health,
            config.ops.grace_period,
        )
        .await
    });
    // Tasks that the service left behind must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

/// Runs a service until it ends; after `shutdown` is cancelled it has `grace` to finish.
///
/// # Errors
///
/// The service's error, or that it did not finish in time.
pub async fn drain(
    service: impl Future<Output = anyhow::Result<()>>,
    shutdown: &CancellationToken,
    health: &Health,
    grace: Duration,
) -> anyhow::Result<()> {
    let late = async {
        shutdown.cancelled().await;
        health.drain();
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        outcome = service => outcome,
        () = late => anyhow::bail!("work in flight did not finish within {}", humantime::format_duration(grace)),
    }
}
