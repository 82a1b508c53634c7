//! The lists that can be monitored.

/// Maximum number of members in a group.
const MAX_MEMBERS: usize = 100;

/// A list that can be monitored: the posts or the comments of one or several subreddits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List<'a> {
    pub(super) members: Vec<&'a str>,
    pub(super) comments: bool,
}

impl<'a> List<'a> {
    pub(super) fn parse(what: &'a str) -> Option<Self> {
        let group = what.strip_prefix("r/")?;
        let (group, comments) = match group.strip_suffix("/comments") {
            Some(group) => (group, true),
            None => (group, false),
        };
        let members: Vec<&str> = group.split('+').collect();
        let well_formed = members.len() <= MAX_MEMBERS && members.iter().all(|name| is_name(name));
        well_formed.then_some(Self { members, comments })
    }
}

fn is_name(name: &str) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    // A user's subreddit is `u_` and a name.
    (2..=24).contains(&name.len()) && name.bytes().all(word)
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn feeds_are_groups_of_subreddits() {
        let list = List::parse("r/rust+u_someone+SaaS/comments").unwrap();
        assert_eq!((list.members.len(), list.comments), (3, true));
        assert!(!List::parse("r/comments").unwrap().comments);
        for wrong in [
            "",
            "rust",
            "r/",
            "r/a",
            "r/a b",
            "r/rust+",
            "r/rust/new",
            "r/rust/comments/x",
        ] {
            assert_eq!(List::parse(wrong), None, "{wrong}");
        }
        let crowd = format!("r/{}", vec!["rust"; 101].join("+"));
        assert_eq!(List::parse(&crowd), None);
    }
}
