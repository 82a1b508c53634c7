//! Certificates of an authority that only its test knows.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Each is another one.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// # Panics
    /// When there is no randomness.
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

    /// What to trust, as PEM.
    #[must_use]
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// A certificate for a server of this name, and its key; both as PEM.
    ///
    /// # Panics
    /// When `name` is no host name.
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
