//! Resource names: full relative paths such as `namespaces/{namespace}/managers/{manager}`.

use std::{fmt, str::FromStr};

use crate::Id;

/// The text is not a name of the expected kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a name of the form `{0}`")]
pub struct ParseNameError(&'static str);

/// A resource name.
pub trait Name: Sized {
    /// Returns the name with these ids, the outermost first.
    ///
    /// # Errors
    /// The kind of the first resource without a well-formed id, such as `manager`.
    fn of_ids(ids: &[String]) -> Result<Self, &'static str>;
}

macro_rules! names {
    ($($(#[$meta:meta])* $name:ident { $($collection:literal / $field:ident),+ })+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name { $(pub $field: Id),+ }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut separator = "";
                $(
                    write!(f, concat!("{}", $collection, "/{}"), separator, self.$field)?;
                    separator = "/";
                )+
                let _ = separator;
                Ok(())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                const FORM: &str = concat!($($collection, "/{", stringify!($field), "}/"),+);
                let error = || ParseNameError(FORM.trim_end_matches('/'));
                let mut parts = text.split('/');
                $(
                    if parts.next() != Some($collection) {
                        return Err(error());
                    }
                    let $field = parts.next().and_then(|id| id.parse().ok()).ok_or_else(error)?;
                )+
                match parts.next() {
                    None => Ok(Self { $($field),+ }),
                    Some(_) => Err(error()),
                }
            }
        }

        impl Name for $name {
            fn of_ids(ids: &[String]) -> Result<Self, &'static str> {
                let mut ids = ids.iter();
                $(
                    let id = ids.next().and_then(|id| id.parse().ok());
                    let $field = id.ok_or(stringify!($field))?;
                )+
                Ok(Self { $($field),+ })
            }
        }

        crate::text::serde_as_text!($name);
    )+};
}

names! {
    /// `namespaces/{namespace}`
    NamespaceName { "namespaces" / namespace }
    /// `namespaces/{namespace}/managers/{manager}`
    ManagerName { "namespaces" / namespace, "managers" / manager }
    /// `namespaces/{namespace}/connections/{connection}`
    ConnectionName { "namespaces" / namespace, "connections" / connection }
    /// `namespaces/{namespace}/managers/{manager}/scans/{scan}`
    ScanName { "namespaces" / namespace, "managers" / manager, "scans" / scan }
    /// `namespaces/{namespace}/connections/{connection}/deliveries/{delivery}`
    DeliveryName { "namespaces" / namespace, "connections" / connection, "deliveries" / delivery }
    /// `namespaces/{namespace}/connections/{connection}/replays/{replay}`
    ReplayName { "namespaces" / namespace, "connections" / connection, "replays" / replay }
}

impl ScanName {
    pub fn manager_name(&self) -> ManagerName {
        ManagerName {
            namespace: self.namespace,
            manager: self.manager,
        }
    }
}

impl DeliveryName {
    pub fn connection_name(&self) -> ConnectionName {
        ConnectionName {
            namespace: self.namespace,
            connection: self.connection,
        }
    }
}

impl ReplayName {
    pub fn connection_name(&self) -> ConnectionName {
        ConnectionName {
            namespace: self.namespace,
            connection: self.connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ManagerName, Name as _, ScanName};
    use crate::Id;

    #[test]
    fn a_name_prints_and_parses_back() {
        let name = ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan: Id::generate(),
        };
        assert_eq!(name.to_string().parse::<ScanName>().unwrap(), name);
    }

    #[test]
    fn the_first_malformed_id_is_reported() {
        let [namespace, manager] = [Id::generate(), Id::generate()];
        let of = |ids: &[&str]| {
            let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            ManagerName::of_ids(&ids)
        };
        let (whole, half) = (namespace.to_string(), manager.to_string());
        let name = ManagerName { namespace, manager };
        assert_eq!(of(&[&whole, &half]), Ok(name));
        assert_eq!(of(&["x", "y"]), Err("namespace"));
        assert_eq!(of(&[&whole, "y"]), Err("manager"));
        assert_eq!(of(&[&whole]), Err("manager"));
    }

    #[test]
    fn a_name_of_another_kind_is_refused() {
        let name = ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan: Id::generate(),
        };
        let error = name.to_string().parse::<ManagerName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a name of the form `namespaces/{namespace}/managers/{manager}`"
        );
    }
}
