//! Credentials for a platform, and the limits of their use.

use secrecy::SecretString;

use super::reader::{Reader, settings};

settings! {
    pub struct Access: Default {
        /// For `reddit` the application's id; for `discourse` the user of the API key. The scanner needs the
        /// credentials, and the compiler too if it must find communities.
        pub client_id: Option<String> = None;
        /// For `reddit`: the application's secret.
        pub client_secret: Option<SecretString> = None;
        /// Token for the requests: required for `x`, `linkedin` and `facebook`; for `discourse` an API key; for
        /// `mastodon` and `lemmy` if the instance requires one.
        pub token: Option<SecretString> = None;
        /// User-Agent of the requests; required for `reddit`, which prescribes
        /// `<platform>:<app id>:<version> (by /u/<name>)`.
        pub user_agent: Option<String> = None;
        /// For `linkedin` such as `202610`, for `facebook` such as `v25.0`: versions end after about a year.
        pub api_version: Option<String> = None;
        /// Maximum number of requests per minute, over all replicas; by default the platform's limit.
        pub requests_per_minute: Option<u32> = None;
        /// Required for `x`: the maximum number of billed posts per UTC day.
        pub posts_per_day: Option<u32> = None;
        /// Names of the accounts that may watch feeds of this platform; all may if it is empty. Restrict a platform whose
        /// credentials see more than the public does, such as pages and organizations of the operator.
        pub accounts: Vec<String> = Vec::new();
        /// Whether stored posts are checked again and blanked after they are deleted at their source. On by
        /// default if the platform's terms require it.
        pub erase_deleted: Option<bool> = None;
    }
}
