//! Names in hosts and social links.

use std::sync::LazyLock;

use url::{Host, Url};

use crate::word_lists;

/// Hosts with the customer's name as a subdomain: `brewforge.github.io`.
static SHARED_HOSTS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../data/words/shared_hosts.txt")).collect()
});
/// Hosts that say nothing about the customer.
static NETWORKS: LazyLock<Vec<&str>> =
    LazyLock::new(|| word_lists::entries(include_str!("../../data/words/networks.txt")).collect());

/// Returns the second-level label of a host, without words that are only added because a domain was taken: `brewforge`
/// of `https://www.getbrewforge.co.uk/about`.
pub(super) fn label(url: &Url) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let ends_with = |suffix: &str| host == suffix || host.ends_with(&format!(".{suffix}"));
    let shared = SHARED_HOSTS.iter().find(|suffix| ends_with(suffix));
    // A network's host is not the customer's name, except on its own front page.
    if NETWORKS.iter().any(|network| ends_with(network)) && url.path() != "/" {
        return None;
    }
    let label = site_label(&host, shared.copied())?;
    let bare = ["get", "try", "use", "join"]
        .iter()
        .find_map(|prefix| label.strip_prefix(prefix).filter(|rest| rest.len() >= 4));
    let label = bare.unwrap_or(&label);
    (label.len() >= 2 && !label.starts_with("xn")).then(|| label.to_owned())
}

/// Returns the unchanged second-level label of a host, which all pages of a site share: `google` of
/// `https://mail.google.com/x`.
pub(super) fn site(url: &Url) -> Option<String> {
    let Some(Host::Domain(host)) = url.host() else {
        return None;
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let shared = SHARED_HOSTS
        .iter()
        .find(|suffix| host.ends_with(&format!(".{suffix}")));
    site_label(&host, shared.copied())
}

fn site_label(host: &str, shared: Option<&str>) -> Option<String> {
    let rest = match shared {
        Some(suffix) => host.strip_suffix(suffix)?.trim_end_matches('.'),
        None => {
            let (rest, last) = host.rsplit_once('.')?;
            let second = rest.rsplit_once('.');
            match second {
                Some((rest, second))
                    if last.len() == 2
                        && matches!(
                            second,
                            "co" | "com" | "org" | "net" | "ac" | "gov" | "edu"
                        ) =>
                {
                    rest
                }
                _ => rest,
            }
        }
    };
    let label = rest.rsplit('.').next()?;
    Some(label.chars().filter(char::is_ascii_alphanumeric).collect())
}

/// Returns the account that a link to a social network leads to.
pub(super) fn handle(href: &str) -> Option<String> {
    let url = Url::parse(href).ok()?;
    let host = url
        .host_str()?
        .trim_start_matches("www.")
        .to_ascii_lowercase();
    let mut segments = url.path_segments()?.filter(|segment| !segment.is_empty());
    let handle = match host.as_str() {
        "twitter.com" | "x.com" | "mobile.twitter.com" | "instagram.com" | "facebook.com"
        | "threads.net" | "tiktok.com" => segments.next()?,
        "youtube.com" => segments.next().filter(|segment| segment.starts_with('@'))?,
        "linkedin.com" => segments
            .next()
            .filter(|s| *s == "company")
            .and_then(|_| segments.next())?,
        "bsky.app" => {
            let profile = segments
                .next()
                .filter(|s| *s == "profile")
                .and_then(|_| segments.next())?;
            profile.strip_suffix(".bsky.social")?
        }
        _ => return None,
    };
    let handle = handle.trim_start_matches('@');
    let sane = (2..=40).contains(&handle.len())
        && handle
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        && handle.bytes().any(|b| b.is_ascii_alphabetic())
        && !matches!(
            handle.to_ascii_lowercase().as_str(),
            "share"
                | "sharer"
                | "sharer.php"
                | "intent"
                | "home"
                | "search"
                | "hashtag"
                | "pages"
                | "groups"
                | "profile.php"
                | "login"
                | "dialog"
                | "explore"
                | "watch"
        );
    sane.then(|| handle.to_owned())
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::{handle, label};

    #[test]
    fn hosts_name_their_owner() {
        for (url, expected) in [
            ("https://www.brewforge.com/about", Some("brewforge")),
            ("https://shop.brew-forge.co.uk", Some("brewforge")),
            ("https://getbrewforge.io", Some("brewforge")),
            ("https://brewforge.github.io/x", Some("brewforge")),
            ("https://twitter.com/brewforge", None),
            ("http://127.0.0.1:8080/", None),
            ("http://localhost/", None),
        ] {
            assert_eq!(
                label(&Url::parse(url).unwrap()).as_deref(),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn social_links_name_a_handle() {
        for (url, expected) in [
            ("https://twitter.com/brewforge", Some("brewforge")),
            ("https://x.com/brewforge?ref=1", Some("brewforge")),
            (
                "https://www.linkedin.com/company/brewforge/",
                Some("brewforge"),
            ),
            (
                "https://bsky.app/profile/brewforge.bsky.social",
                Some("brewforge"),
            ),
            ("https://twitter.com/intent/tweet?text=hi", None),
            ("https://www.linkedin.com/in/jane-doe", None),
            ("https://example.com/brewforge", None),
        ] {
            assert_eq!(handle(url).as_deref(), expected, "{url}");
        }
    }
}
