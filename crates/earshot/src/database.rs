//! The database that a command works on.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use private_servers::{Postgres, postgres::Options};
use runtime::{Config, config::Loader};
use secrecy::ExposeSecret;

/// Location of the database: a data directory of `earshot dev`, a configuration file, or `DATABASE_URL`.
#[derive(Debug, Clone, Args)]
#[group(id = "database")]
pub(crate) struct Arguments {
    /// The data directory of `earshot dev`, running or not.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data_dir: Option<PathBuf>,
    /// The configuration file of the services.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A database that is reachable while this value exists.
pub(crate) struct Database {
    pub(crate) url: String,
    /// Stopped at the end, if it was started only for this command.
    _server: Option<Postgres>,
}

impl Arguments {
    pub(crate) fn open(&self) -> anyhow::Result<Database> {
        if let Some(directory) = &self.data_dir {
            return open_private(directory);
        }
        let config = self.load()?;
        let url = config.database.url.expose_secret();
        if url.is_empty() {
            bail!("no database: give --data-dir, --config, DATABASE_URL or EARSHOT_DATABASE__URL");
        }
        Ok(Database {
            url: url.to_owned(),
            _server: None,
        })
    }

    pub(crate) fn load(&self) -> anyhow::Result<Config> {
        let sources = Loader {
            file: self.config.clone(),
            environment: runtime::environment::variables(),
            plain_database_url: true,
            ..Loader::default()
        };
        Ok(sources.load()?)
    }
}

/// Returns the path of the private server in a data directory.
pub(crate) fn private_home(data_dir: &Path) -> PathBuf {
    data_dir.join("postgres")
}

fn open_private(data_dir: &Path) -> anyhow::Result<Database> {
    let home = private_home(data_dir);
    if !home.exists() {
        bail!(
            "{} is not a data directory of `earshot dev`",
            data_dir.display()
        );
    }
    if let Some(url) = Postgres::running_url(&home)? {
        return Ok(Database { url, _server: None });
    }
    let server = Postgres::start(&home, &Options::durable())
        .with_context(|| format!("cannot start the database in {}", data_dir.display()))?;
    Ok(Database {
        url: server.url(),
        _server: Some(server),
    })
}
