//! The address of the service, and the key for it.
//!
//! They come from the command line (never the key itself, which other users of the machine could read), from the
//! environment, or from a profile: `~/.config/earshot/default.toml`, readable only by its owner, with `url` and `key`.
//! Otherwise they come from the `.earshot` folder that an `earshot dev` in the same folder created; it must run on this
//! machine.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use client::Client;
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

use super::Failure;

/// Profile in the data directory of `earshot dev`, which writes it.
pub(crate) const DEV_PROFILE: &str = ".earshot/profile.toml";
const MAX_BYTES: u64 = 16 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Address of the service.
    #[arg(long, global = true, env = "EARSHOT_URL", value_name = "URL")]
    url: Option<Url>,
    /// File with the API key; alternatively set `EARSHOT_API_KEY` to the key.
    #[arg(long, global = true, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Profile with address and key: `~/.config/earshot/NAME.toml`.
    #[arg(long, global = true, env = "EARSHOT_PROFILE", value_name = "NAME")]
    profile: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    url: Option<Url>,
    key: Option<SecretString>,
}

impl Place {
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let profile = self.profile()?;
        let url =
            self.url.clone().or(profile.url).ok_or_else(|| {
                Failure::usage("no service address: set EARSHOT_URL, or give --url")
            })?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(Failure::usage(format!(
                "`{url}` is not an http or https address"
            )));
        }
        let key = match &self.key_file {
            Some(path) => Some(read(path)?.into()),
            None => variable("EARSHOT_API_KEY").map(SecretString::from),
        };
        let key = key.or(profile.key).ok_or_else(|| {
            Failure::usage("no API key: set EARSHOT_API_KEY, or give --key-file FILE")
        })?;
        Client::new(url, key).map_err(Failure::from)
    }

    fn profile(&self) -> Result<Profile, Failure> {
        let home = home("XDG_CONFIG_HOME", ".config");
        let named = |name: &str| home.as_ref().map(|home| home.join(format!("{name}.toml")));
        if let Some(name) = &self.profile {
            if name.contains('/') {
                return Err(Failure::usage(format!(
                    "`{name}` is not a valid profile name"
                )));
            }
            let path = named(name).ok_or_else(|| Failure::usage("no home folder found"))?;
            return profile(&path)?.ok_or_else(|| {
                Failure::usage(format!(
                    "there is no profile `{name}`: {} is missing",
                    path.display()
                ))
            });
        }
        if let Some(path) = named("default")
            && let Some(profile) = profile(&path)?
        {
            return Ok(profile);
        }
        // A profile from the current folder can only lead to a service on this machine.
        let local = profile(Path::new(DEV_PROFILE))?
            .filter(|profile| profile.url.as_ref().is_some_and(client::is_local));
        Ok(local.unwrap_or(Profile {
            url: None,
            key: None,
        }))
    }
}

/// Returns `None` if the file does not exist.
fn profile(path: &Path) -> Result<Option<Profile>, Failure> {
    let wrong = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mode = file.metadata().map_err(|error| wrong(error.to_string()))?;
    let mode = mode.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "other users can read it (mode {mode:04o}): run chmod 600"
        )));
    }
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| wrong(error.to_string()))?;
    // A TOML error would show the line, which may contain the key.
    let profile = toml::from_str(&text).map_err(|_shows_it| {
        wrong("not a profile: it has `url = \"…\"` and `key = \"…\"`".to_owned())
    })?;
    Ok(Some(profile))
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}

/// Returns our folder in a user's directory, which `variable` names, or in its usual place.
pub(crate) fn home(name: &str, usual: &str) -> Option<PathBuf> {
    let named = variable(name).map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let folder = named.or_else(|| std::env::home_dir().map(|home| home.join(usual)))?;
    Some(folder.join("earshot"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "no setting of a service: the client is built without `runtime`"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::profile;

    #[test]
    fn profile_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        assert!(profile(&path).unwrap().is_none());
        fs::write(&path, "url = \"http://127.0.0.1:1\"\nkey = \"esk_x\"\n").unwrap();
        for (mode, taken) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(profile(&path).is_ok(), taken, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "key = esk_hush\n").unwrap();
        let error = format!("{:?}", profile(&path).err().unwrap());
        assert!(!error.contains("hush"), "{error}");
    }
}
