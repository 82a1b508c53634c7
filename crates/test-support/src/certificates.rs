//! Certificates of an authority that only the test knows.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// A new authority for each value.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// # Panics
    /// If there is no randomness.
    #[must_use]
    pub fn new() -> Self {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).expect("a key can sign for itself");
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// The authority's certificate, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Creates a certificate for a server with this name, and its key; both as PEM.
    ///
    /// # Panics
    /// If `name` is not a host name.
    #[must_use]
    pub fn certify(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new([name.to_owned()]).expect("the name is valid");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the authority can sign");
        (certificate.pem(), key.serialize_pem())
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
