//! Format of each type of setting, in TOML and as text in a variable or a file.

use std::{
    fmt,
    net::SocketAddr,
    num::{IntErrorKind, ParseIntError},
    time::Duration,
};

use ipnet::IpNet;
use secrecy::SecretString;
use toml::Value;
use url::Url;

/// A type of a setting.
///
/// An error message never repeats a secret, nor an address that may contain one.
pub(super) trait Setting: Sized {
    /// Description of a valid value, used after "expected".
    const FORM: &'static str;
    /// True if `<key>_file` may name a file with the value.
    const SECRET: bool = false;

    fn from_text(text: &str) -> Result<Self, String>;

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Self::from_text(text),
            other => Err(unexpected::<Self>(other)),
        }
    }

    /// The type in the reference, whose column has no room for an example.
    fn describe() -> String {
        let form = Self::FORM;
        form.split(" such as ").next().unwrap_or(form).to_owned()
    }

    /// The value in TOML; empty if there is no value, or it must not be shown.
    fn show(&self) -> String;
}

/// The error for a number that does not fit its type; a key with bounds reports those instead.
pub(super) const OUT_OF_RANGE: &str = "is out of range";

fn unexpected<T: Setting>(value: &Value) -> String {
    format!("expected {}, found {}", T::FORM, a_type(value))
}

fn a_type(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a string",
        Value::Integer(_) => "an integer",
        Value::Float(_) => "a float",
        Value::Boolean(_) => "a boolean",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

fn quoted(value: impl fmt::Display) -> String {
    Value::String(value.to_string()).to_string()
}

impl Setting for String {
    const FORM: &'static str = "a string";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("is empty".to_owned());
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Setting for SecretString {
    const FORM: &'static str = "a string";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("is empty".to_owned());
        }
        Ok(Self::from(text.to_owned()))
    }

    fn show(&self) -> String {
        String::new()
    }
}

impl Setting for bool {
    const FORM: &'static str = "true or false";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .ok_or_else(|| format!("expected {}", Self::FORM))
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| unexpected::<Self>(value))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            const FORM: &'static str = "a whole number";

            fn from_text(text: &str) -> Result<Self, String> {
                let number: i64 = text.parse().map_err(|error: ParseIntError| match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => OUT_OF_RANGE.to_owned(),
                    _ => format!("expected {}", Self::FORM),
                })?;
                Self::from_toml(&Value::Integer(number))
            }

            fn from_toml(value: &Value) -> Result<Self, String> {
                let number = value.as_integer().ok_or_else(|| unexpected::<Self>(value))?;
                Self::try_from(number).map_err(|_| OUT_OF_RANGE.to_owned())
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

whole_numbers!(u16, u32);

impl Setting for Duration {
    const FORM: &'static str = "a duration such as \"5s\", \"2h\" or \"30d\"";

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        humantime::parse_duration(text).map_err(|error| format!("expected {}: {error}", Self::FORM))
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Self::from_text(text),
            Value::Integer(0) => Ok(Self::ZERO),
            Value::Integer(_) => Err("needs a unit, as in \"5s\"".to_owned()),
            other => Err(unexpected::<Self>(other)),
        }
    }

    /// In the largest unit that divides it, because "90d" reads better than "2months 29days".
    fn show(&self) -> String {
        const UNITS: [(u128, &str); 4] = [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
        ];
        let millis = self.as_millis();
        let text = UNITS
            .iter()
            .find(|(unit, _)| millis.is_multiple_of(*unit))
            .map_or_else(
                || format!("{millis}ms"),
                |(unit, name)| match millis / unit {
                    0 => "0s".to_owned(),
                    1 if *name == "d" => "24h".to_owned(),
                    count => format!("{count}{name}"),
                },
            );
        quoted(text)
    }
}

impl Setting for SocketAddr {
    const FORM: &'static str = "an address and port such as \"0.0.0.0:8080\"";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .ok_or_else(|| format!("expected {}", Self::FORM))
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Setting for IpNet {
    const FORM: &'static str = "a network such as \"10.0.0.0/8\"";

    fn from_text(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .ok_or_else(|| format!("expected {}, not `{text}`", Self::FORM))
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Setting for Url {
    const FORM: &'static str = "an absolute URL";

    fn from_text(text: &str) -> Result<Self, String> {
        let url = Self::parse(text).map_err(|error| format!("expected {}: {error}", Self::FORM))?;
        match url.scheme() {
            "http" | "https" | "ws" | "wss" if url.has_host() => Ok(url),
            scheme => Err(format!("expected an http(s) or ws(s) URL, not `{scheme}:`")),
        }
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

/// In text, items are separated by commas or line breaks; with brackets it is a TOML list.
impl<T: Setting> Setting for Vec<T> {
    const FORM: &'static str = "a list";
    const SECRET: bool = T::SECRET;

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('[') {
            let value: Value = text
                .parse()
                .ok()
                .ok_or_else(|| "not a TOML list".to_owned())?;
            return Self::from_toml(&value);
        }
        text.split([',', '\n'])
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .enumerate()
            .map(|(index, item)| T::from_text(item).map_err(|reason| at(index, &reason)))
            .collect()
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        let items = value.as_array().ok_or_else(|| unexpected::<Self>(value))?;
        items
            .iter()
            .enumerate()
            .map(|(index, item)| T::from_toml(item).map_err(|reason| at(index, &reason)))
            .collect()
    }

    fn describe() -> String {
        format!("a list; each item {}", T::FORM)
    }

    fn show(&self) -> String {
        let items: Vec<_> = self.iter().map(Setting::show).collect();
        format!("[{}]", items.join(", "))
    }
}

fn at(index: usize, reason: &str) -> String {
    format!("item {}: {reason}", index + 1)
}

/// An enum whose values are a few words.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            /// The word in the configuration.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl $crate::config::setting::Setting for $name {
            const FORM: &'static str = $crate::config::setting::one_of!($($word),+);

            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("expected {}, not `{text}`", Self::FORM)),
                }
            }

            fn show(&self) -> String {
                format!("\"{}\"", self.as_str())
            }
        }
    };
}

macro_rules! one_of {
    ($first:literal $(, $rest:literal)*) => {
        concat!("one of `", $first, "`" $(, ", `", $rest, "`")*)
    };
}

pub(super) use choice;
pub(super) use one_of;
