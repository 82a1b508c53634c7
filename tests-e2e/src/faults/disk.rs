//! A small separate disk for PostgreSQL, which can be filled. Mounting it needs root.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// A file system in memory. Dropping it unmounts it.
pub(super) struct Disk(PathBuf);

impl Disk {
    /// Mounts a disk at `path`, which is created; `None` if this process may not.
    pub(super) fn mount(path: &Path, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(path)
            .output();
        let is_mounted = mounted.is_ok_and(|mounted| mounted.status.success());
        is_mounted.then(|| Self(path.to_owned()))
    }

    /// Uses up the free space.
    pub(super) fn fill(&self) {
        let mut file = File::create(self.ballast()).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
    }

    /// Frees the space again.
    pub(super) fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily, because a server that was killed may not be gone yet.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
