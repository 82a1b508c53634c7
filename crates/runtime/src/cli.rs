//! The command line that the four services share.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::{Config, ConfigError, build_info, config, environment};

/// Command-line arguments of every service.
#[derive(Debug, Clone, Parser)]
#[command(about = None)]
pub struct Arguments {
    /// The configuration file; `EARSHOT_SECTION__KEY` variables override it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Only check the configuration, without side effects, and exit: 0 if it is valid, 1 if not.
    #[arg(long)]
    pub check_config: bool,
}

impl Arguments {
    /// Parses the command line of `service`. For help, the version, or wrong usage, it prints and returns the
    /// exit code: 2 for wrong usage.
    ///
    /// # Errors
    ///
    /// The exit code of a process that has nothing more to do.
    pub fn parse_for(
        service: &'static str,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, ExitCode> {
        let command = Self::command()
            .name(service)
            .bin_name(service)
            .version(build_info::version());
        command
            .try_get_matches_from(arguments)
            .and_then(|matches| Self::from_arg_matches(&matches))
            .map_err(|error| {
                // A closed stdout must not change the exit code.
                let _ = error.print();
                ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
            })
    }

    /// The complete configuration of `service`.
    ///
    /// # Errors
    ///
    /// Lists all errors.
    pub fn load(&self, service: &str) -> Result<Config, ConfigError> {
        let config = config::load(self.config.as_deref(), environment::variables())?;
        config.check_service(service)?;
        Ok(config)
    }
}
