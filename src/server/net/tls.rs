//! TLS of the listening socket: a certificate that may change while the server runs, and the certificates of clients (D97).
//!
//! Certificates are replaced every few weeks, by programs that write two files one after the other. A server that loads them
//! in between has a key that does not fit, and one that has to be restarted drops its clients. So the files are read once a
//! second, and loaded when their contents have changed and then stayed the same for a reading. What cannot be used changes
//! nothing: the pair that works stays, and the log and `/readyz` say why. An expired certificate does not replace a valid
//! one.
//!
//! Connections keep what they have begun with. Only clients that have shown a certificate are asked to leave when the
//! authorities change: one of them may have been taken away to lock them out.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

use crate::reconcile::sync_loop::schedule::TICK;
use crate::server::prelude::*;
use crate::syntax::x509::{self, PemFault};

/// The files of TLS.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The chain of certificates, leaf first.
    pub(crate) certificate: PathBuf,
    /// The private key.
    pub(crate) key: PathBuf,
    /// The authorities of clients' certificates.
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether clients may connect without a certificate.
    pub(crate) clients_are_optional: bool,
}

/// The contents of the files.
struct TlsTexts {
    certificate: String,
    key: Zeroizing<String>,
    client_ca: Option<String>,
}

impl TlsTexts {
    fn read(files: &TlsFiles) -> Result<Self, Fault> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: Zeroizing::new(read(&files.key)?),
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the TLS file `{}`: {error}", path.display());
        Fault::new(Code::Unreadable, message).help("check --tls-cert, --tls-key and --tls-client-ca")
    })
}

/// TLS of a server.
pub(crate) struct Tls {
    files: TlsFiles,
    current: ArcSwap<LoadedTls>,
    /// Whether the files have an error, so that an earlier certificate is in use.
    is_outdated: AtomicBool,
    /// Asks for a reload.
    reload_request: Notify,
    fingerprints: Lock<FileFingerprints>,
    /// Tells connections of new authorities.
    authorities: watch::Sender<blake3::Hash>,
}

/// The content of the files.
struct LoadedTls {
    config: Arc<ServerConfig>,
    /// The end of the certificate's validity, in Unix time.
    expiry: i64,
    /// A digest of the authorities of clients' certificates.
    authorities: blake3::Hash,
}

/// The fingerprint that distinguishes one state of the files from the next.
struct FileFingerprints {
    last_read: blake3::Hash,
    /// The state that was loaded, or that could not be.
    last_loaded: blake3::Hash,
}

impl Tls {
    /// Loads the files.
    pub(crate) fn load(files: TlsFiles) -> Result<Arc<Self>, Fault> {
        let texts = TlsTexts::read(&files)?;
        let loaded = load_config(&files, &texts)?;
        let digest = digest(&Ok(texts));
        Ok(Arc::new(Self {
            files,
            authorities: watch::Sender::new(loaded.authorities),
            current: ArcSwap::from_pointee(loaded),
            is_outdated: AtomicBool::new(false),
            reload_request: Notify::new(),
            fingerprints: Lock::new(FileFingerprints { last_read: digest, last_loaded: digest }),
        }))
    }

    /// Performs handshakes with the current certificate.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.load().config))
    }

    /// Tells when the authorities of clients' certificates change after now.
    pub(super) fn authorities(&self) -> watch::Receiver<blake3::Hash> {
        self.authorities.subscribe()
    }

    /// Whether an earlier certificate is in use, because the files have an error.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// The end of the certificate's validity, in Unix time.
    pub(crate) fn expiry(&self) -> i64 {
        self.current.load().expiry
    }

    /// Asks for a reload now.
    pub(crate) fn reload(&self) {
        self.reload_request.notify_one();
    }

    /// Loads the files whenever they change, as long as the server runs. Their contents are compared: a volume of
    /// Kubernetes swaps a link above them, and a certificate is often replaced before its key.
    pub(super) async fn keep_up(self: Arc<Self>) {
        loop {
            let is_asked = timeout(TICK, self.reload_request.notified()).await.is_ok();
            let tls = Arc::clone(&self);
            let _ = tokio::task::spawn_blocking(move || tls.reload_if_changed(is_asked)).await;
        }
    }

    /// Refuses a certificate that has expired in the place of one that has not.
    fn check_expiry(&self, next: i64, now: i64) -> Result<(), Fault> {
        if next >= now || self.expiry() < now {
            return Ok(());
        }
        let at = Timestamp::from_second(next).map(|at| at.to_string()).unwrap_or_default();
        let message = format!("the certificate in `{}` expired at {at}", self.files.certificate.display());
        Err(Fault::new(Code::InvalidPem, message).help("replace it with a certificate that is valid"))
    }

    /// Reads the files, and loads them if they have changed and stay the same, or if somebody asks.
    fn reload_if_changed(&self, is_asked: bool) {
        let texts = TlsTexts::read(&self.files);
        let now = digest(&texts);
        {
            let mut fingerprints = self.fingerprints.lock();
            let is_settled = fingerprints.last_read == now;
            fingerprints.last_read = now;
            if !is_asked && (!is_settled || fingerprints.last_loaded == now) {
                return;
            }
            fingerprints.last_loaded = now;
        }
        let loaded = texts.and_then(|texts| {
            let loaded = load_config(&self.files, &texts)?;
            self.check_expiry(loaded.expiry, Timestamp::now().as_second())?;
            Ok(loaded)
        });
        match loaded {
            Ok(loaded) => {
                let (expiry, authorities) = (loaded.expiry, loaded.authorities);
                self.current.store(Arc::new(loaded));
                // Connections that begin from now on have the new ones.
                self.authorities.send_if_modified(|now| std::mem::replace(now, authorities) != authorities);
                self.is_outdated.store(false, Ordering::Relaxed);
                let until = Timestamp::from_second(expiry).map(|at| at.to_string()).unwrap_or_default();
                tracing::info!("The TLS certificate is loaded; it is valid until {until}.");
            }
            Err(fault) => {
                self.is_outdated.store(true, Ordering::Relaxed);
                tracing::error!(
                    code = %fault.code,
                    "Cannot load the TLS files; the last good ones stay in use: {}",
                    fault.message
                );
            }
        }
    }
}

/// A digest of the contents, or of the error. The contents themselves are not kept.
fn digest(texts: &Result<TlsTexts, Fault>) -> blake3::Hash {
    let parts = match texts {
        Ok(texts) => [texts.certificate.as_str(), texts.key.as_str(), texts.client_ca.as_deref().unwrap_or_default()],
        Err(fault) => [fault.message.as_str(), "", ""],
    };
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize()
}

/// The settings of TLS.
fn load_config(files: &TlsFiles, texts: &TlsTexts) -> Result<LoadedTls, Fault> {
    let facts = x509::certificate(&texts.certificate).map_err(|fault| invalid(&files.certificate, &fault))?.facts;
    x509::check_key(&texts.certificate, &texts.key).map_err(|fault| invalid(&files.key, &fault))?;
    let expiry = facts.not_after.parse().map_or(0, Timestamp::as_second);
    let unusable = |path: &Path, reason: String| {
        let message = format!("cannot use the TLS file `{}`: {reason}", path.display());
        Fault::new(Code::InvalidPem, message)
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(texts.certificate.as_bytes()).collect();
    let chain = chain.map_err(|error| unusable(&files.certificate, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(texts.key.as_bytes());
    let key = key.map_err(|_| unusable(&files.key, "it has no private key".to_owned()))?;
    let provider = Arc::new(default_provider());
    let versions = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| unusable(&files.certificate, error.to_string()))?;
    let clients = match (&files.client_ca, &texts.client_ca) {
        (Some(path), Some(pem)) => {
            x509::authority(pem).map_err(|fault| invalid(path, &fault))?;
            let mut roots = RootCertStore::empty();
            for authority in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                let authority = authority.map_err(|error| unusable(path, error.to_string()))?;
                roots.add(authority).map_err(|error| unusable(path, error.to_string()))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if files.clients_are_optional { verifier.allow_unauthenticated() } else { verifier };
            versions.with_client_cert_verifier(verifier.build().map_err(|error| unusable(path, error.to_string()))?)
        }
        _ => versions.with_no_client_auth(),
    };
    let config = clients.with_single_cert(chain, key);
    let mut config = config.map_err(|error| unusable(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let authorities = blake3::hash(texts.client_ca.as_deref().unwrap_or_default().as_bytes());
    Ok(LoadedTls { config: Arc::new(config), expiry, authorities })
}

fn invalid(path: &Path, fault: &PemFault) -> Fault {
    let code = if fault.is_key_mismatch() { Code::KeyMismatch } else { Code::InvalidPem };
    Fault::new(code, format!("cannot use the TLS file `{}`: {fault}", path.display())).help(fault.help())
}

/// Marks a request that came over TLS.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverTls;

/// The names in the verified certificate of a client.
#[derive(Debug, Clone)]
pub(crate) struct PeerCertificate {
    /// The subject alternative names: URIs, DNS names and e-mail addresses.
    pub(crate) names: Arc<[String]>,
}

impl PeerCertificate {
    /// Reads the certificate that a client has shown in its handshake.
    pub(super) fn from_connection(connection: &ServerConnection) -> Option<Self> {
        let leaf = connection.peer_certificates()?.first()?;
        Some(Self { names: x509::identities(leaf.as_ref()).into() })
    }
}
