//! The role that the members of a group get.

use domain::key::Role;

use super::setting::Setting;

/// The members of `group` get `role` in `account`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub group: String,
    pub account: String,
    pub role: Role,
}

impl Setting for Grant {
    const FORM: &'static str = "`<group>=<account>:<role>`";

    /// The group may contain `=` and `:`, as names of directories do.
    fn from_text(text: &str) -> Result<Self, String> {
        let read = || {
            let (group, rest) = text.rsplit_once('=')?;
            let (account, role) = rest.split_once(':')?;
            let (group, account) = (group.trim(), account.trim());
            let role = role.trim().parse().ok()?;
            (!group.is_empty() && !account.is_empty()).then(|| Self {
                group: group.to_owned(),
                account: account.to_owned(),
                role,
            })
        };
        read().ok_or_else(|| format!("expected {}, not `{text}`", Self::FORM))
    }

    fn show(&self) -> String {
        format!("\"{}={}:{}\"", self.group, self.account, self.role.as_str())
    }
}

#[cfg(test)]
mod tests {
    use domain::key::Role;

    use super::{Grant, Setting};

    #[test]
    fn grant_is_read_from_its_end() {
        for group in ["cn=Staff: Sales,dc=acme", "/earshot-users"] {
            let grant = Grant::from_text(&format!("{group}=acme:EDITOR")).unwrap();
            assert_eq!(
                (&*grant.group, &*grant.account, grant.role),
                (group, "acme", Role::Editor)
            );
        }
        for wrong in [
            "",
            "staff",
            "staff=acme",
            "staff=acme:",
            "staff=acme:ADMIN",
            "=acme:OWNER",
            "staff=:OWNER",
        ] {
            let reason = Grant::from_text(wrong).unwrap_err();
            assert!(reason.starts_with("expected `<group>="), "{wrong}");
        }
    }
}
