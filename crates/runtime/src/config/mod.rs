//! The configuration: one tree of small structs, read once at start.
//!
//! Later sources win: defaults, the TOML file, environment variables. A key `scanner.backfill` is the variable
//! `EARSHOT_SCANNER__BACKFILL`; a secret may also be in a file that `<key>_file` names. If the configuration is
//! wrong, the process reports all errors at once, each with the full path of its key.
//!
//! [`root`], [`sections`], [`platform`] and [`access`] define the settings; their doc comments are the reference in
//! `docs/operations/configuration.md`. [`Loader`] reads it.

mod access;
mod authorities;
mod check;
mod database_tls;
mod error;
mod filter;
mod grant;
mod key;
mod kinds;
mod load;
mod platform;
mod reader;
mod reference;
mod root;
mod sections;
mod setting;
mod tree;

pub use access::Access;
pub use error::{ConfigError, Problem};
pub use filter::LogFilter;
pub use grant::Grant;
pub use key::EncryptionKey;
pub use kinds::Kind;
pub use load::load;
pub use platform::PlatformConfig;
pub use reference::reference;
pub use root::{Config, Loader};
pub use sections::{
    Bus, Compiler, Database, Dispatcher, Gateway, Judge, Log, LogFormat, Model, Oidc, Ops,
    Outbound, PostReader, Quotas, Retention, Scanner, Secrets, Smtp, SmtpEncryption,
};
