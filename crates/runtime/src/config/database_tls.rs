//! TLS for the database, from `database.url` and `database.ca_certificates_file`.
//!
//! The driver gets only the URL, so the file becomes a parameter of it, with libpq's name.

/// The error if the two do not say clearly whether connections are encrypted.
pub(super) fn check(url: &str, certificates: &str) -> Result<(), String> {
    let modes: Vec<&str> = parameters(url)
        .filter_map(|parameter| parameter.strip_prefix("sslmode="))
        .collect();
    for mode in &modes {
        match *mode {
            "require" | "verify-ca" | "verify-full" => {}
            "disable" if certificates.is_empty() => {}
            "disable" => {
                return Err("has sslmode=disable and database.ca_certificates_file".to_owned());
            }
            _ => {
                let reason = "has an sslmode that may silently leave connections unencrypted: \
                              use `verify-full`, or `disable`";
                return Err(reason.to_owned());
            }
        }
    }
    if modes.len() > 1 {
        return Err("has two sslmodes".to_owned());
    }
    let named = parameters(url).any(|parameter| parameter.starts_with("sslrootcert="));
    if named && !certificates.is_empty() {
        return Err("has an sslrootcert and database.ca_certificates_file".to_owned());
    }
    Ok(())
}

/// The URL with the file as a parameter.
pub(super) fn with_certificates(url: &str, file: &str) -> String {
    let mark = if query(url).is_some() { '&' } else { '?' };
    let mut whole = format!("{url}{mark}sslrootcert=");
    for letter in file.chars() {
        match letter {
            '%' => whole.push_str("%25"),
            '&' => whole.push_str("%26"),
            '#' => whole.push_str("%23"),
            letter => whole.push(letter),
        }
    }
    whole
}

fn parameters(url: &str) -> impl Iterator<Item = &str> {
    query(url).unwrap_or_default().split('&')
}

/// A password may contain a `?` too.
fn query(url: &str) -> Option<&str> {
    let servers = url.split_once('@').map_or(url, |(_, servers)| servers);
    Some(servers.split_once('?')?.1)
}
