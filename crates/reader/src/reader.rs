use std::path::Path;

use domain::Focus;
use matching::EVIDENCE;

use crate::{Customer, Encoder, OpenError, Post, ReadError, head::Head};

/// Judges posts by what they mean: an [`Encoder`] and the layer that was fitted to its vectors.
pub struct Reader {
    encoder: Encoder,
    head: Head,
}

impl Reader {
    /// Loads both files. `evidence` names the numbers that [`Reader::judge`] gets, in their order.
    pub fn open(encoder: &Path, head: &Path, evidence: &[&str]) -> Result<Self, OpenError> {
        let encoder = Encoder::open(encoder)?;
        Ok(Self {
            head: Head::open(head, encoder.version(), evidence)?,
            encoder,
        })
    }

    /// Loads `encoder.bin` and `head.bin` of a folder, which must be of this release.
    pub fn in_folder(folder: &Path) -> Result<Self, OpenError> {
        let file = |name| folder.join(name);
        Self::open(&file("encoder.bin"), &file("head.bin"), EVIDENCE)
    }

    /// Reads a post. Blocks the thread for about 10 ms.
    pub fn post(&self, title: &str, text: &str) -> Result<Post, ReadError> {
        Post::read(&self.encoder, &self.head.categories, title, text)
    }

    /// Reads what a customer sells: a brief, and each of at most [`crate::MAX_OFFERS`] offers. `names` are those that the
    /// focus asks about. Blocks the thread for about 12 ms per offer.
    pub fn customer(
        &self,
        brief: &str,
        offers: &[impl AsRef<str>],
        names: &[impl AsRef<str>],
    ) -> Result<Customer, ReadError> {
        Customer::read(&self.encoder, &self.head.categories, brief, offers, names)
    }

    /// Returns the probability that a person would keep the post. Takes well under a millisecond.
    pub fn judge(&self, focus: Focus, evidence: &[f64], post: &Post, customer: &Customer) -> f64 {
        self.head.judge(focus, evidence, post, customer)
    }
}
