//! Format of each type of setting, in TOML and as text in a variable or a file.

use std::{net::SocketAddr, time::Duration};

use domain::{egress::Exception, host_name::HostName, manager::SourceType};
use ipnet::IpNet;
use secrecy::SecretString;
use toml::Value;
use url::Url;

/// A type of a setting.
///
/// An error message never repeats a secret, nor an address that may contain one.
pub(super) trait Setting: Sized + Clone {
    /// Description of a valid value, used after "expected".
    const FORM: &'static str;
    /// Type of its values in TOML.
    const TOML: &'static str = "string";
    /// True if `<key>_file` may name a file with the value.
    const SECRET: bool = false;

    fn from_text(text: &str) -> Result<Self, String>;

    fn from_toml(value: &Value) -> Result<Self, String> {
        if value.type_str() != Self::TOML {
            let (form, found) = (Self::FORM, value.type_str());
            return Err(format!("expected {form}, found type `{found}`"));
        }
        Self::from_text(&plain(value))
    }

    /// The type in the reference, whose column has no room for an example.
    fn describe() -> String {
        let form = Self::FORM;
        form.split(" such as ").next().unwrap_or(form).to_owned()
    }

    /// The value in TOML; empty if there is no value, or it must not be shown.
    fn show(&self) -> String {
        String::new()
    }
}

/// The error for a number that does not fit its type; a key with bounds reports those instead.
pub(super) const OUT_OF_RANGE: &str = "is out of range";

/// The value without the quotes of a string.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn unexpected<T: Setting>(text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if is_number && T::TOML == "integer" {
        return OUT_OF_RANGE.to_owned();
    }
    format!("expected {}, not `{text}`", T::FORM)
}

/// Types that are read with `FromStr` and shown with `Display`.
macro_rules! parsed {
    ($($type:ty as $toml:literal: $form:literal,)*) => {$(
        impl Setting for $type {
            const FORM: &'static str = $form;
            const TOML: &'static str = $toml;

            fn from_text(text: &str) -> Result<Self, String> {
                text.parse().ok().ok_or_else(|| unexpected::<Self>(text))
            }

            fn show(&self) -> String {
                match $toml {
                    "string" => Value::String(self.to_string()).to_string(),
                    _ => self.to_string(),
                }
            }
        }
    )*};
}

parsed! {
    bool as "boolean": "true or false",
    u16 as "integer": "a whole number",
    u32 as "integer": "a whole number",
    SocketAddr as "string": "an address and port such as \"0.0.0.0:8080\"",
    IpNet as "string": "a network such as \"10.0.0.0/8\"",
    HostName as "string": "a host name such as \"receiver\"",
    Exception as "string": "a host name, an address or a network",
}

impl Setting for String {
    const FORM: &'static str = "a string";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("is empty".to_owned()),
            _ => Ok(text.to_owned()),
        }
    }

    fn show(&self) -> String {
        Value::from(self.as_str()).to_string()
    }
}

impl Setting for SecretString {
    const FORM: &'static str = "a string";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self::from)
    }
}

impl Setting for Duration {
    const FORM: &'static str = "a duration such as \"5s\", \"2h\" or \"30d\"";

    fn from_text(text: &str) -> Result<Self, String> {
        match text.trim().parse::<i64>() {
            Ok(0) => Ok(Self::ZERO),
            Ok(_) => Err("needs a unit, as in \"5s\"".to_owned()),
            Err(_) => humantime::parse_duration(text)
                .map_err(|error| format!("expected {}: {error}", Self::FORM)),
        }
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(_) | Value::Integer(_) => Self::from_text(&plain(value)),
            _ => Err(format!(
                "expected {}, found type `{}`",
                Self::FORM,
                value.type_str()
            )),
        }
    }

    /// In the largest unit that divides it, because "90d" reads better than "2months 29days".
    fn show(&self) -> String {
        let millis = self.as_millis();
        let (unit, name) = [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "m"),
            (1_000, "s"),
            (1, "ms"),
        ]
        .into_iter()
        .find(|(unit, _)| millis >= *unit && millis.is_multiple_of(*unit))
        .unwrap_or((1_000, "s"));
        format!("\"{}{name}\"", millis / unit)
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
}

/// A setting that may be absent.
impl<T: Setting> Setting for Option<T> {
    const FORM: &'static str = T::FORM;
    const TOML: &'static str = T::TOML;
    const SECRET: bool = T::SECRET;

    fn from_text(text: &str) -> Result<Self, String> {
        T::from_text(text).map(Some)
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        T::from_toml(value).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
}

/// In text, items are separated by commas or line breaks; with brackets it is a TOML list.
impl<T: Setting> Setting for Vec<T> {
    const FORM: &'static str = "a list";
    const SECRET: bool = T::SECRET;

    fn from_text(text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('[') {
            let list = text.parse::<Value>().ok();
            return Self::from_toml(&list.ok_or("not a TOML list")?);
        }
        let items = text.split([',', '\n']).map(str::trim);
        collect(items.filter(|item| !item.is_empty()).map(T::from_text))
    }

    fn from_toml(value: &Value) -> Result<Self, String> {
        match value {
            Value::Array(items) => collect(items.iter().map(T::from_toml)),
            _ => Err(format!(
                "expected {}, found type `{}`",
                Self::FORM,
                value.type_str()
            )),
        }
    }

    fn describe() -> String {
        format!("a list; each item {}", T::FORM)
    }

    fn show(&self) -> String {
        let items: Vec<_> = self.iter().map(Setting::show).collect();
        format!("[{}]", items.join(", "))
    }
}

fn collect<T>(items: impl Iterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    items
        .enumerate()
        .map(|(index, item)| item.map_err(|reason| format!("item {}: {reason}", index + 1)))
        .collect()
}

/// An enum with a method `as_str`, whose values are a few words.
macro_rules! words {
    ($type:ident: $first:ident = $first_word:literal $(, $variant:ident = $word:literal)* $(,)?) => {
        impl $crate::config::setting::Setting for $type {
            const FORM: &'static str =
                concat!("one of `", $first_word, "`" $(, ", `", $word, "`")*);

            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $first_word => Ok(Self::$first),
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("expected {}, not `{text}`", Self::FORM)),
                }
            }

            fn show(&self) -> String {
                format!("\"{}\"", self.as_str())
            }
        }
    };
}

/// Defines such an enum.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($variant,)+ }

        impl $name {
            /// The word in the configuration.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        $crate::config::setting::words!($name: $($variant = $word),+);
    };
}

words!(SourceType: Forum = "FORUM", Microblog = "MICROBLOG", Network = "NETWORK");

pub(super) use choice;
pub(super) use words;
