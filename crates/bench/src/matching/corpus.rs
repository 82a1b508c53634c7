//! Real posts, from a folder that the caller names.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

#[derive(Deserialize)]
struct Post {
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
}

/// Returns title and text of up to `most` posts with a text, file by file.
pub(super) fn read(folder: &Path, most: usize) -> Result<Vec<(String, String)>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl.gz"));
    files.sort();
    let mut posts = Vec::new();
    for file in files {
        let open = File::open(&file).with_context(|| format!("open {}", file.display()))?;
        for line in BufReader::new(MultiGzDecoder::new(open)).lines() {
            let line = line.with_context(|| format!("read {}", file.display()))?;
            let post: Post = serde_json::from_str(&line)?;
            if posts.len() < most && !post.text.is_empty() {
                posts.push((post.title, post.text));
            }
        }
    }
    ensure!(!posts.is_empty(), "no post in {}", folder.display());
    Ok(posts)
}
