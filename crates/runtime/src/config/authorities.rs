//! Certificate authorities that the operator trusts in addition to the public ones.

use anyhow::Context as _;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};

/// Reads the certificates (DER) of the file in the setting, or else of the one that `SSL_CERT_FILE` names for all
/// programs on this machine.
pub(super) fn read(setting: &str, variable: Option<&str>) -> anyhow::Result<Vec<Vec<u8>>> {
    if !setting.is_empty() {
        return certificates("outbound.ca_certificates_file", setting);
    }
    let Some(file) = variable else {
        return Ok(Vec::new());
    };
    // Images set it, and not for us alone.
    Ok(certificates("SSL_CERT_FILE", file).unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
        Vec::new()
    }))
}

/// Reads the certificates of a file. Errors name it, and the setting that names it.
pub(super) fn certificates(key: &str, file: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    read_pem(file).with_context(|| format!("{key}: {file}"))
}

fn read_pem(file: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found: Vec<CertificateDer<'_>> = read?;
    anyhow::ensure!(!found.is_empty(), "no certificate in PEM form");
    Ok(found.into_iter().map(|one| one.to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::read;

    const TWO: &str = "# Of a company\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n\
                       -----BEGIN CERTIFICATE-----\nBAUG\n-----END CERTIFICATE-----\n";

    #[test]
    fn setting_is_read_and_the_variable_where_it_is_not_set() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (two, empty) = (file("two.pem", TWO), file("empty.pem", "nothing"));
        let missing = folder.path().join("missing.pem");
        let missing = missing.to_str().unwrap();
        let found = vec![vec![1, 2, 3], vec![4, 5, 6]];
        assert_eq!(read(&two, Some(missing)).unwrap(), found);
        assert_eq!(read("", Some(&two)).unwrap(), found);
        assert!(read("", None).unwrap().is_empty());
        assert!(read("", Some(missing)).unwrap().is_empty());
        for wrong in [missing, &empty] {
            let error = format!("{:#}", read(wrong, None).unwrap_err());
            let expected = format!("outbound.ca_certificates_file: {wrong}: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
