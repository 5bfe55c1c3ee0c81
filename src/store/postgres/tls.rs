//! TLS to the database: what `sslmode` asks for, as libpq has it.
//!
//! | `sslmode` | Encrypted | Verified |
//! | --- | --- | --- |
//! | `disable` | never | |
//! | `prefer` (default) | if the server can | nothing |
//! | `require` | always | nothing; with `sslrootcert`, as `verify-ca` |
//! | `verify-ca` | always | the authority |
//! | `verify-full` | always | the authority and the name |
//!
//! A connection that verifies nothing keeps out who listens, and not who answers in the server's place.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::model::Code;
use crate::store::error::StoreError;

/// The value of `sslrootcert` for the authorities of the system.
const SYSTEM: &str = "system";

/// The verification of the server's certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CertificateCheck {
    /// Nothing.
    #[default]
    Nothing,
    /// A known authority has issued the certificate.
    Authority,
    /// A known authority has issued the certificate, and it is the server's.
    AuthorityAndName,
}

/// The TLS parameters of an address.
#[derive(Debug, Clone, Default)]
pub(super) struct TlsParameters {
    pub(super) check: CertificateCheck,
    /// `sslrootcert`: a file with authorities, or `system`.
    pub(super) authorities: Option<PathBuf>,
    /// `sslcert`: the certificate of this client.
    pub(super) certificate: Option<PathBuf>,
    /// `sslkey`: its key.
    pub(super) key: Option<PathBuf>,
}

impl TlsParameters {
    /// Makes the connector. The files are read again for each connection, because certificates are renewed.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, StoreError> {
        let provider = Arc::new(default_provider());
        let versions = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let versions = versions.map_err(StoreError::internal)?;
        let check = match (&self.authorities, self.check) {
            (Some(_), CertificateCheck::Nothing) => CertificateCheck::Authority,
            (_, check) => check,
        };
        let inner = match check {
            CertificateCheck::Nothing => None,
            _ => {
                let roots = Arc::new(self.roots()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
                Some(verifier.map_err(|error| unusable(Path::new("sslrootcert"), &error))?)
            }
        };
        let schemes = provider.signature_verification_algorithms.supported_schemes();
        let verifier = Arc::new(ServerCheck { check, inner, provider, schemes });
        let verified = versions.dangerous().with_custom_certificate_verifier(verifier);
        let config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
                verified.with_client_auth_cert(chain, private).map_err(|error| {
                    unusable(certificate, &error).help("set `sslkey` in the address to the key of `sslcert`")
                })?
            }
            (None, None) => verified.with_no_client_auth(),
            _ => {
                let message = "the address of the store has only one of `sslcert` and `sslkey`";
                return Err(StoreError::new(Code::StoreFailed, message).help("set both, or none of them"));
            }
        };
        Ok(MakeRustlsConnect::new(config))
    }

    /// The authorities that are trusted.
    fn roots(&self) -> Result<RootCertStore, StoreError> {
        let mut roots = RootCertStore::empty();
        let Some(path) = &self.authorities else {
            let message = "the address of the store asks to verify the server, and names no authority";
            let help =
                "add `sslrootcert=FILE` to the address, or `sslrootcert=system` for the authorities of the system";
            return Err(StoreError::new(Code::StoreFailed, message).help(help));
        };
        if path.as_os_str() == SYSTEM {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        } else {
            for authority in certificates(path)? {
                roots.add(authority).map_err(|error| unusable(path, &error))?;
            }
        }
        Ok(roots)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unusable(path, &error))?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(|error| unusable(path, &error))?;
    if found.is_empty() { Err(unusable(path, &"no certificate found")) } else { Ok(found) }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    let message = format!("cannot use `{}` for the connection to the store: {error}", path.display());
    StoreError::new(Code::StoreFailed, message).help("check the file, which must be PEM")
}

/// Verifies as much of a server's certificate as was asked for.
#[derive(Debug)]
struct ServerCheck {
    check: CertificateCheck,
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<rustls::crypto::CryptoProvider>,
    schemes: Vec<SignatureScheme>,
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        let verified = inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is checked last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == CertificateCheck::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}
