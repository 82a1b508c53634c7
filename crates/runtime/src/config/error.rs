//! Errors in a configuration.

use std::fmt;

/// All errors in a configuration, each with the full path of its key.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

/// One wrong setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `scanner.poll_interval_min`, or the name of a file that could not be read.
    pub key: String,
    /// Never contains a value that could be secret.
    pub reason: String,
    /// The file or variable that set the key; `None` for a missing key.
    pub origin: Option<String>,
}

impl Problem {
    pub(super) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            reason: reason.into(),
            origin: None,
        }
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)?;
        match &self.origin {
            Some(origin) => write!(f, " ({origin})"),
            None => Ok(()),
        }
    }
}
