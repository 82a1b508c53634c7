//! Reads the sources into a [`Config`].

use std::{fmt, path::Path, sync::Arc};

use secrecy::{ExposeSecret, SecretString};

use super::{
    check::check,
    database_tls,
    error::{ConfigError, Problem},
    reader::Reader,
    reference::read_nothing,
    root::{Config, Loader},
    tree::{self, Tree},
};

/// Reads the configuration of a service from defaults, file and environment.
///
/// # Errors
///
/// Lists all errors.
pub fn load(
    file: Option<&Path>,
    environment: Vec<(String, String)>,
) -> Result<Config, ConfigError> {
    let sources = Loader {
        file: file.map(Path::to_owned),
        environment,
        ..Loader::default()
    };
    sources.load()
}

impl fmt::Debug for Loader {
    /// The environment may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loader({:?})", self.file)
    }
}

impl Loader {
    /// # Errors
    ///
    /// Lists all errors.
    pub fn load(self) -> Result<Config, ConfigError> {
        let origin = Arc::new(self);
        let mut config = origin.read()?;
        config.origin = Some(origin);
        Ok(config)
    }

    fn read(&self) -> Result<Config, ConfigError> {
        let mut tree = Tree::new();
        if let Some(path) = &self.file {
            tree::add_file(&mut tree, path).map_err(|problem| ConfigError {
                problems: vec![problem],
            })?;
        }
        for (name, value) in &self.environment {
            tree::add_variable(&mut tree, name, value);
        }
        let names_database =
            tree.contains_key("database.url") || tree.contains_key("database.url_file");
        if self.plain_database_url && !names_database {
            for (name, value) in self
                .environment
                .iter()
                .filter(|(name, _)| name == "DATABASE_URL")
            {
                tree::add_text(&mut tree, "database.url".to_owned(), name, value);
            }
        }

        let mut reader = Reader::new(tree);
        let config = Config::read(&mut reader, Some(&self.base));
        if let Some(config) = &config {
            check(config, &mut reader);
        }
        let all = read_nothing();
        for (name, _) in self
            .environment
            .iter()
            .filter(|(_, value)| !value.is_empty())
        {
            reader.reject_misspelt(&all, name);
        }
        let problems = reader.finish();
        let Some(mut config) = config.filter(|_| problems.is_empty()) else {
            return Err(ConfigError { problems });
        };
        let database = &mut config.database;
        let (url, file) = (database.url.expose_secret(), &database.ca_certificates_file);
        if !url.is_empty() && !file.is_empty() {
            database.url = SecretString::from(database_tls::with_certificates(url, file));
        }
        Ok(config)
    }
}

impl Config {
    /// Reads the files again, including those with secrets, with the environment from the start. `None` if the
    /// configuration does not come from sources.
    ///
    /// # Errors
    ///
    /// Lists all errors.
    pub fn read_again(&self) -> Option<Result<Self, ConfigError>> {
        let origin = self.origin.as_ref()?;
        Some(origin.read().map(|config| Self {
            origin: Some(Arc::clone(origin)),
            ..config
        }))
    }

    /// Checks that the required settings of a service are present.
    ///
    /// # Errors
    ///
    /// Names each key that is missing, or that only `earshot dev` may have.
    pub fn check_service(&self, service: &str) -> Result<(), ConfigError> {
        let missing = |url: &SecretString| url.expose_secret().is_empty();
        let mut problems = Vec::new();
        if missing(&self.database.url) {
            problems.push(Problem::new("database.url", "is required"));
        }
        if missing(&self.bus.url) {
            problems.push(Problem::new("bus.url", "is required"));
        } else if self.bus.is_in_process() {
            let reason =
                "`in-process:` works in `earshot dev` only; a service needs amqp:// or amqps://";
            problems.push(Problem::new("bus.url", reason));
        }
        let uses_keys = matches!(service, "api-gateway" | "webhook-dispatcher");
        if uses_keys && self.secrets.encryption_keys.is_empty() {
            problems.push(Problem::new("secrets.encryption_keys", "is required"));
        }
        if service == "webhook-dispatcher" && self.ops.grace_period < self.dispatcher.timeout {
            let reason = "must be at least `dispatcher.timeout`, or attempts are cut short";
            problems.push(Problem::new("ops.grace_period", reason));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { problems })
        }
    }
}
