//! Certificates of an authority that only the test knows.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};

/// A new authority for each value.
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// # Panics
    /// If there is no randomness.
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
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// The authority's certificate, as DER.
    pub fn der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }

    /// Creates a certificate for a server with this name, and its key; both as PEM.
    ///
    /// # Panics
    /// If `name` is not a host name.
    pub fn certify(&self, name: &str) -> (String, String) {
        self.sign(CertificateParams::new([name.to_owned()]).expect("the name is valid"))
    }

    /// Same as [`Self::certify`], for a certificate that expired in 2020.
    ///
    /// # Panics
    /// If `name` is not a host name.
    pub fn certify_expired(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new([name.to_owned()]).expect("the name is valid");
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().expect("a key can be made");
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
