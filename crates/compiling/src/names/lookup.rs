//! Looks up names in any spelling.
//!
//! A page can write thousands of names, so what they are compared with is squeezed once.

use std::collections::{BTreeSet, HashSet};

use super::{named::Named, spelling::squeeze};
use crate::page::Page;

/// A set of names.
pub(super) struct Names {
    squeezed: HashSet<String>,
    lengths: BTreeSet<usize>,
}

impl Names {
    pub(super) fn of<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let squeezed: HashSet<String> = names.into_iter().map(|name| squeeze(name)).collect();
        Self {
            lengths: squeezed.iter().map(String::len).collect(),
            squeezed,
        }
    }

    pub(super) fn of_spellings(names: &[Named]) -> Self {
        Self::of(names.iter().flat_map(|named| &named.spellings))
    }

    /// People whom the pages quote or list.
    pub(super) fn of_people(pages: &[Page]) -> Self {
        Self::of(pages.iter().flat_map(|page| &page.text.people))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.squeezed.contains(&squeeze(name))
    }

    /// Returns whether a name is one of these, or begins with one that is not very short.
    pub(super) fn begins(&self, name: &str) -> bool {
        const MIN_BYTES: usize = 4;
        let name = squeeze(name);
        let begins = |length: &usize| {
            let begin = name.get(..*length);
            begin.is_some_and(|begin| self.squeezed.contains(begin))
        };
        self.squeezed.contains(&name) || self.lengths.range(MIN_BYTES..).any(begins)
    }
}
