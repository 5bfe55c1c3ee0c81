//! A provider of OpenID Connect: discovery, keys, authorization, tokens and device codes over HTTP. Whoever asks is signed in
//! at once, with the claims that a test has set.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

/// The ID and the secret of the only client.
pub(crate) const CLIENT_ID: &str = "edge";
pub(crate) const CLIENT_SECRET: &str = "s3cret: of the client";
/// What somebody enters to sign in on a command line.
pub(crate) const USER_CODE: &str = "WDJB-MJHT";

/// How long a connection may say nothing.
const SILENCE: Duration = Duration::from_secs(2);
/// The name of its key, whatever the key is.
const KEY_ID: &str = "one";
const RSA_KEY: &str = include_str!("../data/oidc-provider.key.pem");

/// A key that signs tokens.
pub(crate) enum SigningKeyPair {
    /// RS256.
    Rsa(Box<RsaKeyPair>),
    /// ES256.
    Elliptic(Box<EcdsaKeyPair>),
}

impl SigningKeyPair {
    /// The RSA key of the tests.
    pub(crate) fn rsa() -> Self {
        let pem: String = RSA_KEY.lines().filter(|line| !line.starts_with('-')).collect();
        Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(&STANDARD.decode(pem).unwrap()).unwrap()))
    }

    /// A new elliptic key.
    pub(crate) fn elliptic() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::Elliptic(Box::new(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap()))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Elliptic(_) => "ES256",
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }
            Self::Elliptic(pair) => pair.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec(),
        }
    }

    /// The public key as a JWK.
    fn published(&self, id: &str) -> Value {
        let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "use": "sig", "kid": id, "n": encoded(&public.n), "e": encoded(&public.e)})
            }
            Self::Elliptic(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": id, "x": encoded(x), "y": encoded(y)})
            }
        }
    }
}

/// What the provider does.
pub(crate) struct ProviderScript {
    /// The claims of the next tokens, in addition to the usual ones or instead of them.
    pub claims: Value,
    /// The key that is published.
    pub key: SigningKeyPair,
    /// The key that signs in place of the published one.
    pub signer: Option<SigningKeyPair>,
    /// The algorithm in the headers of tokens, if another one than that of the key.
    pub algorithm: Option<&'static str>,
    /// Whether somebody has entered the code of a command line.
    pub has_entered: bool,
    /// How often the keys were read.
    pub keys_read: usize,
    /// The nonce, the challenge and the redirect of each code.
    codes: BTreeMap<String, [String; 3]>,
}

/// A running provider. It stops when it is dropped.
pub(crate) struct IdentityProvider {
    /// Where it listens.
    pub address: SocketAddr,
    script: Arc<Mutex<ProviderScript>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl IdentityProvider {
    /// A provider that signs with RS256.
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    /// The same at an address.
    pub(crate) fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(ProviderScript {
            claims: json!({}),
            key: SigningKeyPair::rsa(),
            signer: None,
            algorithm: None,
            has_entered: false,
            keys_read: 0,
            codes: BTreeMap::new(),
        }));
        let stopping = Arc::new(AtomicBool::new(false));
        let (shared, stop) = (Arc::clone(&script), Arc::clone(&stopping));
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // Who connects and says nothing is no request.
                let _ = connection.map(|connection| serve(connection, address, &mut shared.lock().unwrap()));
            }
        });
        Self { address, script, stopping, thread: Some(thread) }
    }

    /// The issuer of its tokens.
    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it does.
    pub(crate) fn script(&self) -> MutexGuard<'_, ProviderScript> {
        self.script.lock().unwrap()
    }

    /// The section of a configuration file for it, with roles for the groups `platform`, `shop` and `staff`.
    pub(crate) fn section(&self) -> String {
        format!(
            "openid_connect:\n  issuer: {}\n  client_id: {CLIENT_ID}\n  client_secret_file: client.secret\n  \
             scopes: [email, groups]\n  roles:\n  - {{claim: groups, value: platform, role: admin}}\n  \
             - {{claim: groups, value: shop, role: editor, sources: [shop]}}\n  \
             - {{claim: groups, value: staff, role: viewer}}\n  device: true\n",
            self.issuer()
        )
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An answer: the status, the location of a redirect, and the body.
type ProviderAnswer = (u16, Option<String>, Value);

/// Answers the request of a connection.
fn serve(connection: TcpStream, address: SocketAddr, script: &mut ProviderScript) {
    // A browser can open connections that it does not use.
    connection.set_read_timeout(Some(SILENCE)).unwrap();
    let mut reader = BufReader::new(connection);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
        head += &std::mem::take(&mut line);
    }
    let header = |name: &str| {
        let mut named = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        named.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or_default();
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let target = head.split(' ').nth(1).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (status, location, value) = match path {
        "/.well-known/openid-configuration" => (200, None, metadata(address)),
        "/keys" => {
            script.keys_read += 1;
            (200, None, json!({"keys": [script.key.published(KEY_ID)]}))
        }
        "/authorize" => authorize(script, query.as_bytes()),
        "/token" | "/device" if header("authorization") != Some(credentials()) => {
            (401, None, json!({"error": "invalid_client"}))
        }
        "/token" => token(script, address, &body),
        "/device" => (
            200,
            None,
            json!({
                "device_code": "device",
                "user_code": USER_CODE,
                "verification_uri": format!("http://{address}/enter"),
                "expires_in": 60,
                "interval": 1,
            }),
        ),
        _ => (404, None, json!({})),
    };
    let text = value.to_string();
    let location = location.map(|location| format!("Location: {location}\r\n")).unwrap_or_default();
    let length = text.len();
    let head =
        format!("HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{location}");
    let _ = reader.get_mut().write_all(format!("{head}Connection: close\r\n\r\n{text}").as_bytes());
}

fn metadata(address: SocketAddr) -> Value {
    let at = |path: &str| format!("http://{address}{path}");
    json!({
        "issuer": at(""),
        "authorization_endpoint": at("/authorize"),
        "token_endpoint": at("/token"),
        "jwks_uri": at("/keys"),
        "device_authorization_endpoint": at("/device"),
        "token_endpoint_auth_methods_supported": ["client_secret_basic"],
    })
}

/// The header with the ID and the secret of the client.
fn credentials() -> String {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET))))
}

fn fields(form: &[u8]) -> BTreeMap<String, String> {
    form_urlencoded::parse(form).map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// Sends a browser back with a code.
fn authorize(script: &mut ProviderScript, query: &[u8]) -> ProviderAnswer {
    let fields = fields(query);
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let asked = ["response_type", "client_id", "code_challenge_method", "scope"].map(field);
    if asked != ["code", CLIENT_ID, "S256", "openid email groups"] {
        return (400, None, json!({"asked": asked}));
    }
    let code = format!("code-{}", script.codes.len());
    script.codes.insert(code.clone(), [field("nonce"), field("code_challenge"), field("redirect_uri")]);
    (303, Some(format!("{}?code={code}&state={}", field("redirect_uri"), field("state"))), json!({}))
}

/// Exchanges a code, once, for a token.
fn token(script: &mut ProviderScript, address: SocketAddr, form: &[u8]) -> ProviderAnswer {
    let fields = fields(form);
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let refused = |error: &str| (400, None, json!({"error": error}));
    let nonce = match field("grant_type").as_str() {
        "authorization_code" => {
            let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, field("code_verifier").as_bytes()));
            match script.codes.insert(field("code"), Default::default()) {
                Some([nonce, known, redirect]) if known == challenge && redirect == field("redirect_uri") => {
                    Some(nonce)
                }
                _ => return refused("invalid_grant"),
            }
        }
        "urn:ietf:params:oauth:grant-type:device_code" if field("device_code") != "device" => {
            return refused("invalid_grant");
        }
        "urn:ietf:params:oauth:grant-type:device_code" if !script.has_entered => {
            return refused("authorization_pending");
        }
        "urn:ietf:params:oauth:grant-type:device_code" => None,
        _ => return refused("unsupported_grant_type"),
    };
    (200, None, json!({"token_type": "Bearer", "access_token": "unused", "id_token": id_token(script, address, nonce)}))
}

fn id_token(script: &ProviderScript, address: SocketAddr, nonce: Option<String>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({
        "iss": format!("http://{address}"),
        "aud": CLIENT_ID,
        "sub": "248289761001",
        "email": "ada@example.com",
        "email_verified": true,
        "groups": ["staff"],
        "iat": now,
        "exp": now + 300,
        "nonce": nonce,
    });
    claims.as_object_mut().unwrap().extend(script.claims.as_object().unwrap().clone());
    let key = script.signer.as_ref().unwrap_or(&script.key);
    let algorithm = script.algorithm.unwrap_or_else(|| key.algorithm());
    let header = json!({"alg": algorithm, "kid": KEY_ID, "typ": "JWT"});
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", encoded(&header), encoded(&claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}
