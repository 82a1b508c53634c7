//! Posts that are reserved for the final check, and must not be used for training.

use std::{collections::HashSet, path::Path};

use crate::Error;

#[derive(Default)]
pub(crate) struct Reserved(HashSet<String>);

impl Reserved {
    /// Reads `reserved_ids.txt` of the folder, if it exists.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("reserved_ids.txt");
        if !path.exists() {
            return Ok(Self::default());
        }
        let ids = std::fs::read_to_string(path)?;
        Ok(Self(ids.lines().map(str::to_owned).collect()))
    }

    /// Returns whether a post is reserved, under any name that a data set uses: `t3_1983tg`, `r_1983tg`, `g_r1983tg`,
    /// `r1983tg`.
    pub(crate) fn has(&self, id: &str) -> bool {
        let id = id.split_once('_').map_or(id, |(_, id)| id);
        let has = |id: &str| self.0.contains(&format!("t3_{id}"));
        has(id) || id.strip_prefix('r').is_some_and(has)
    }
}
