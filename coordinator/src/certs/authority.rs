//! The CA: makes certificates. ECDSA on P-256 throughout.

use std::{
    fmt,
    path::Path,
    time::{Duration, SystemTime},
};

use inrush_agent::credentials::{SERVER_NAME, fingerprint, random};
use inrush_common::{
    id::AgentName,
    join::{Fingerprint, Role},
};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber,
    SignatureAlgorithm,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::{
    CertsError, Refused,
    files::{self, Pair},
};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How long a CA lives, and its coordinator's certificate.
const CA_LIFETIME: Duration = DAY.saturating_mul(3_653);

/// How long a certificate of an agent or a user lives.
pub const LIFETIME: Duration = DAY.saturating_mul(30);

/// Certificates are good from so long before they are made: clocks differ.
const BACKDATED: Duration = DAY;

/// The CA of one data directory.
pub struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    lifetime: Duration,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

/// A certificate that was made.
#[derive(Debug, Clone)]
pub struct Signed {
    /// It.
    pub certificate: CertificateDer<'static>,
    /// Good until then.
    pub expires_at: SystemTime,
}

/// Somebody else's public key.
struct Public<'a>(&'a [u8]);

impl PublicKeyData for Public<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl Authority {
    /// Makes a CA in a data directory, which is made too, or opens the one that is there. Whether it was made.
    ///
    /// # Errors
    /// When the directory or the files cannot be used.
    pub fn init(data_dir: &Path, now: SystemTime) -> Result<(Self, bool), CertsError> {
        if files::is_there(data_dir) {
            return Ok((Self::open(data_dir)?, false));
        }
        let key = KeyPair::generate().map_err(cannot)?;
        let certificate = ca_params(now).self_signed(&key).map_err(cannot)?;
        let pair = Pair {
            certificate: certificate.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        };
        let made = files::write(data_dir, &pair)?;
        Ok((Self::open(data_dir)?, made))
    }

    /// Opens the CA of a data directory.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn open(data_dir: &Path) -> Result<Self, CertsError> {
        let Pair { certificate, key } = files::read(data_dir)?;
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256);
        let key = key.map_err(|error| CertsError::Damaged {
            path: files::folder(data_dir).display().to_string(),
            cause: format!("the CA's key cannot be used ({error})"),
        })?;
        // Only the name of the issuer and its key are of interest; its dates are those of the file.
        let issuer = Issuer::new(ca_params(SystemTime::UNIX_EPOCH), key);
        Ok(Self { certificate, issuer, lifetime: LIFETIME })
    }

    /// The same, with certificates that live for another time.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Duration) -> Self {
        Self { lifetime, ..self }
    }

    /// The CA's own certificate.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// What join tokens pin.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.certificate)
    }

    /// Makes a certificate for a public key: an uncompressed point on P-256.
    ///
    /// # Errors
    /// When it is no key.
    pub fn issue(
        &self,
        role: Role,
        name: &AgentName,
        public_key: &[u8],
        now: SystemTime,
    ) -> Result<Signed, CertsError> {
        if public_key.len() != 65 || public_key.first() != Some(&4) {
            return Err(Refused::Key.into());
        }
        let expires_at = now + self.lifetime;
        let mut params = params(name.as_str(), now, expires_at)?;
        params.distinguished_name.push(DnType::OrganizationalUnitName, role.name());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&Public(public_key), &self.issuer).map_err(cannot)?;
        Ok(Signed { certificate: certificate.der().clone(), expires_at })
    }

    /// Makes the coordinator's own certificate, with its key.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn issue_own(
        &self,
        now: SystemTime,
    ) -> Result<(CertificateDer<'static>, PrivatePkcs8KeyDer<'static>), CertsError> {
        let key = KeyPair::generate().map_err(cannot)?;
        let mut params = params(SERVER_NAME, now, now + CA_LIFETIME)?;
        let name = SERVER_NAME.try_into().map_err(cannot)?;
        params.subject_alt_names = vec![rcgen::SanType::DnsName(name)];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot)?;
        Ok((certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der())))
    }
}

fn cannot(error: rcgen::Error) -> CertsError {
    CertsError::Make(error.to_string())
}

fn params(name: &str, now: SystemTime, end: SystemTime) -> Result<CertificateParams, CertsError> {
    let serial = random().map_err(|error| CertsError::Make(error.to_string()))?;
    let mut params = CertificateParams::default();
    params.serial_number = serial.first_chunk::<16>().map(|bytes| SerialNumber::from_slice(bytes));
    params.distinguished_name = named(name);
    params.not_before = (now - BACKDATED).into();
    params.not_after = end.into();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn ca_params(now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("Inrush coordinator CA");
    params.not_before = now.checked_sub(BACKDATED).unwrap_or(now).into();
    params.not_after = (now + CA_LIFETIME).into();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::OrganizationName, "Inrush");
    names.push(DnType::CommonName, name);
    names
}
