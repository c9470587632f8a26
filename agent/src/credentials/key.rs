//! Keys and random bytes.

use ring::{
    rand::{SecureRandom as _, SystemRandom},
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use rustls::pki_types::PrivatePkcs8KeyDer;

/// A key is none, or the system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// Not one of ours.
    #[error("the private key is not an ECDSA P-256 key")]
    Key,
    /// The system gives no random bytes.
    #[error("this system gives no random bytes")]
    Random,
}

/// A new key.
#[derive(Debug)]
pub struct KeyPair {
    /// Stays here.
    pub private: PrivatePkcs8KeyDer<'static>,
    /// Goes into the certificate: an uncompressed point on P-256.
    pub public: Vec<u8>,
}

impl KeyPair {
    /// Makes one.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Self, InvalidKey> {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let random = SystemRandom::new();
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| InvalidKey::Random)?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)
            .map_err(|_| InvalidKey::Key)?;
        let public = pair.public_key().as_ref().to_vec();
        Ok(Self { private: pkcs8.as_ref().to_vec().into(), public })
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system gives none.
pub fn random() -> Result<[u8; 32], InvalidKey> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| InvalidKey::Random)?;
    Ok(bytes)
}
