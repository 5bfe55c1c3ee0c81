//! Certificates and keys that openssl wrote, read back: the expected values are what `openssl x509` prints.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::{AuthorityFacts, CertificateFacts, PemFault, check_key};

fn certificate(pem: &str) -> Result<CertificateFacts, PemFault> {
    super::certificate(pem).map(|chain| chain.facts)
}

fn authority(pem: &str) -> Result<AuthorityFacts, PemFault> {
    super::authority(pem).map(|chain| chain.facts)
}

#[test]
fn a_certificate_says_what_openssl_prints() {
    let facts = certificate(EC).unwrap();
    assert_eq!(facts.subject_common_name, "shop.example.com");
    assert_eq!(facts.issuer_common_name, "shop.example.com");
    assert_eq!(facts.subject_alternative_names.dns_names, ["shop.example.com", "*.shop.example.com"]);
    assert_eq!(facts.subject_alternative_names.ips, ["192.0.2.7", "2001:db8::1"]);
    assert_eq!(facts.not_before, "2026-11-20T13:20:21Z");
    assert_eq!(facts.not_after, "2036-11-17T13:20:21Z");
    assert_eq!(facts.key_usages, ["digital-signature", "key-agreement"]);
    assert_eq!(facts.extended_key_usages, ["server-auth", "client-auth", "1.3.6.1.4.1.311.20.2.2"]);
    assert_eq!(facts.private_key_type, "ecdsa");
    assert_eq!(facts.serial_number, "0a1b");
    assert_eq!(facts.subject_organization, "Shop GmbH");
    assert_eq!(facts.subject_organizational_unit, "Edge");
    assert_eq!(facts.subject_locality, "München");
    assert_eq!(facts.subject_province, "Bayern");
    assert_eq!(facts.subject_country, "DE");
}

#[test]
fn absent_facts_are_empty_and_key_types_told_apart() {
    let facts = certificate(ED).unwrap();
    assert_eq!(facts.private_key_type, "ed25519");
    assert_eq!(facts.serial_number, "80ff01");
    assert_eq!(facts.subject_organization, "");
    assert!(facts.subject_alternative_names.dns_names.is_empty() && facts.extended_key_usages.is_empty());
    assert_eq!(certificate(RSA).unwrap().private_key_type, "rsa");
    assert_eq!(certificate(RSA).unwrap().serial_number, "05");
}

#[test]
fn an_authority_is_read_beyond_2049() {
    let facts = authority(ED).unwrap();
    assert_eq!(facts.subject_common_name, "Edge CA");
    assert_eq!(facts.not_before, "2026-11-20T13:20:21Z");
    assert_eq!(facts.not_after, "2051-11-20T13:20:21Z");
    assert_eq!(facts.key_usages, ["cert-sign", "crl-sign"]);
}

#[test]
fn comments_and_windows_line_ends_do_no_harm() {
    let text = format!("Certificate:\n    Data: x\n{EC}\n# the issuer\n{ED}");
    assert_eq!(certificate(&text), certificate(EC));
    assert_eq!(certificate(&text.replace('\n', "\r\n")), certificate(EC));
    assert_eq!(authority(&text), authority(EC));
}

#[test]
fn a_key_in_any_format_belongs_to_its_certificate() {
    let pairs = [
        (EC, EC_KEY),
        (EC, EC_SEC1),
        (EC, EC_BARE),
        (EC, EC_COMPRESSED),
        (P384, P384_KEY),
        (ED, ED_KEY),
        (RSA, RSA_KEY),
        (RSA, RSA_PKCS1),
    ];
    for (certificate, key) in pairs {
        assert_eq!(check_key(certificate, key), Ok(()), "{key}");
        assert_eq!(check_key(certificate, &key.replace('\n', "\r\n")), Ok(()), "{key}");
    }
}

#[test]
fn any_other_key_is_refused() {
    for certificate in [EC, P384, ED, RSA] {
        assert_eq!(check_key(certificate, OTHER_KEY), Err(PemFault::KeyMismatch));
    }
    for key in [P384_KEY, P384_BARE, ED_KEY, RSA_KEY, RSA_PKCS1] {
        assert_eq!(check_key(EC, key), Err(PemFault::KeyMismatch));
    }
    // Only the leaf counts.
    assert_eq!(check_key(&format!("{ED}{EC}"), EC_KEY), Err(PemFault::KeyMismatch));
    assert!(PemFault::KeyMismatch.is_key_mismatch());
}

#[test]
fn a_key_that_cannot_be_checked_says_why() {
    let faults = [
        (EC, EC_ENCRYPTED, PemFault::EncryptedPrivateKey),
        (EC, EC_PROC_TYPE, PemFault::EncryptedPrivateKey),
        (P384, P384_BARE, PemFault::PublicPointMissing),
        (EC, "", PemFault::NoPrivateKey),
        (EC, EC, PemFault::UnsupportedPrivateKey("CERTIFICATE".to_owned())),
    ];
    for (certificate, key, fault) in faults {
        assert_eq!(check_key(certificate, key), Err(fault));
    }
    assert_eq!(check_key(EC, &format!("{EC_KEY}{EC}")), Err(PemFault::SeveralBlocks));
    let relabelled = ED_KEY.replace("PRIVATE", "RSA PRIVATE");
    assert_eq!(check_key(RSA, &relabelled), Err(PemFault::UnreadablePrivateKey));
}

#[test]
fn damage_is_named() {
    let refused = |text: &str, fault: PemFault| {
        assert_eq!(certificate(text), Err(fault.clone()));
        assert_eq!(authority(text), Err(fault.clone()));
        assert!(!fault.is_key_mismatch() && !fault.help().is_empty());
    };
    refused("", PemFault::NoBlock);
    refused("MIIC", PemFault::NoBlock);
    let (cut, _) = EC.split_at(300);
    refused(cut, PemFault::Truncated("CERTIFICATE".to_owned()));
    refused(&format!("{cut}\n{ED}"), PemFault::Truncated("CERTIFICATE".to_owned()));
    refused(&EC.replacen("MII", "M*I", 1), PemFault::Base64("CERTIFICATE".to_owned()));
    refused(&format!("{ED}{EC_KEY}"), PemFault::WrongLabel("PRIVATE KEY".to_owned()));
    let request = EC.replace("CERTIFICATE", "CERTIFICATE REQUEST");
    refused(&request, PemFault::WrongLabel("CERTIFICATE REQUEST".to_owned()));
    refused(&EC_KEY.replace("PRIVATE KEY", "CERTIFICATE"), PemFault::NotX509(1));
    let second = EC_KEY.replace("PRIVATE KEY", "CERTIFICATE");
    refused(&format!("{EC}{second}"), PemFault::NotX509(2));
    // Two files joined without the newline between them, and one that was indented.
    refused(&format!("{}{ED}", ED.trim_end()), PemFault::Boundary(9));
    refused(&ED.replace("-----BEGIN", "  -----BEGIN"), PemFault::Boundary(1));
    refused(&ED.replace('\n', "\\n"), PemFault::Boundary(1));
}

#[test]
fn bytes_behind_the_structure_are_refused() {
    // Ed25519's certificate has a length that base64 pads by nothing, so another group can follow.
    let longer = ED.replace("\n-----END", "\nAAAA\n-----END");
    let fault = certificate(&longer).unwrap_err();
    assert!(matches!(fault, PemFault::TrailingData), "{fault}");
}

// openssl req -x509, P-256
const EC: &str = "\
-----BEGIN CERTIFICATE-----
MIIC1jCCAnygAwIBAgICChswCgYIKoZIzj0EAwIwgYcxCzAJBgNVBAYTAkRFMQ8w
DQYDVQQIDAZCYXllcm4xETAPBgNVBAcMCE3DvG5jaGVuMRIwEAYDVQQKDAlTaG9w
IEdtYkgxDTALBgNVBAsMBEVkZ2UxFjAUBgNVBAMMDWZpcnN0LmV4YW1wbGUxGTAX
BgNVBAMMEHNob3AuZXhhbXBsZS5jb20wHhcNMjYxMTIwMTMyMDIxWhcNMzYxMTE3
MTMyMDIxWjCBhzELMAkGA1UEBhMCREUxDzANBgNVBAgMBkJheWVybjERMA8GA1UE
BwwITcO8bmNoZW4xEjAQBgNVBAoMCVNob3AgR21iSDENMAsGA1UECwwERWRnZTEW
MBQGA1UEAwwNZmlyc3QuZXhhbXBsZTEZMBcGA1UEAwwQc2hvcC5leGFtcGxlLmNv
bTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIaHF5InN0f35XDTDzAmyosAtkQM
q8PoYR9Fo6n+L0Jd2xjKJcuvQCwblV/cvxmRJAnwGw+VktqkRpJUd71O0EmjgdUw
gdIwHQYDVR0OBBYEFI3wL3POF1w8b4FDTaM6LA1CUSfWMB8GA1UdIwQYMBaAFI3w
L3POF1w8b4FDTaM6LA1CUSfWMA8GA1UdEwEB/wQFMAMBAf8wRwYDVR0RBEAwPoIQ
c2hvcC5leGFtcGxlLmNvbYISKi5zaG9wLmV4YW1wbGUuY29thwTAAAIHhxAgAQ24
AAAAAAAAAAAAAAABMAsGA1UdDwQEAwIDiDApBgNVHSUEIjAgBggrBgEFBQcDAQYI
KwYBBQUHAwIGCisGAQQBgjcUAgIwCgYIKoZIzj0EAwIDSAAwRQIgWwUHdCNs5Dse
M+IEpfsowyVRwSIdzBV6lnIIemcxjQsCIQCAFEAul10vEFanS7GjdNqjSqxUsCz6
xRpIbSci1ZsDLw==
-----END CERTIFICATE-----
";

// its key as PKCS#8
const EC_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg7QUGZYEihazgx/SW
67G+mUYFQF/KBfVLqNp/jbowyOShRANCAASGhxeSJzdH9+Vw0w8wJsqLALZEDKvD
6GEfRaOp/i9CXdsYyiXLr0AsG5Vf3L8ZkSQJ8BsPlZLapEaSVHe9TtBJ
-----END PRIVATE KEY-----
";

// as SEC1, behind the curve as `openssl ecparam -genkey` writes it
const EC_SEC1: &str = "\
-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIO0FBmWBIoWs4Mf0luuxvplGBUBfygX1S6jaf426MMjkoAoGCCqGSM49
AwEHoUQDQgAEhocXkic3R/flcNMPMCbKiwC2RAyrw+hhH0Wjqf4vQl3bGMoly69A
LBuVX9y/GZEkCfAbD5WS2qRGklR3vU7QSQ==
-----END EC PRIVATE KEY-----
";

// without the public point
const EC_BARE: &str = "\
-----BEGIN EC PRIVATE KEY-----
MDECAQEEIO0FBmWBIoWs4Mf0luuxvplGBUBfygX1S6jaf426MMjkoAoGCCqGSM49
AwEH
-----END EC PRIVATE KEY-----
";

// with a compressed point
const EC_COMPRESSED: &str = "\
-----BEGIN EC PRIVATE KEY-----
MFcCAQEEIO0FBmWBIoWs4Mf0luuxvplGBUBfygX1S6jaf426MMjkoAoGCCqGSM49
AwEHoSQDIgADhocXkic3R/flcNMPMCbKiwC2RAyrw+hhH0Wjqf4vQl0=
-----END EC PRIVATE KEY-----
";

// behind a passphrase
const EC_ENCRYPTED: &str = "\
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHrMFYGCSqGSIb3DQEFDTBJMCgGCSqGSIb3DQEFDDAbBAia+8MoFmEThwIBATAM
BggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQM9VaanDO+8uGt8fZ0e5bEgSBkLPH
bfK9mbMsuagTaiieOp0w8i4LqgGI15LtVKuZl0CmQp/KYmCFr4pLimpay+LqD4pw
9cT1FWWqb/+zaWAOoUc36tts5dS8sABx0fFTc2mHnBUZFjlnjeA5kVI8bGOXrBV8
Y39RgNvPhQ5xkIdzkkDZDTJgOQ6c352B4Ymg2SwzM4WWOnKFSSfL1pe7BcAcWA==
-----END ENCRYPTED PRIVATE KEY-----
";

// the same in the old way
const EC_PROC_TYPE: &str = "\
-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,68A4FBC394C838020B7F8EDF15D12F8C

8l/eGmJYUoMm9xxRCYpzzz+RdIiHS5K0FfzY2Z6e7XcM79G+nYmmlLMFxnwTM4rP
wJakjtxfLJvPlbafIFCU1usq9Tnni3g01Ag5Gf2NwParkgb3nwOcJA+RS/2FOiiF
S2cb17Y6X97/vfQ6E0QrntXGvESdhzSNw5YXWhLo7rY=
-----END EC PRIVATE KEY-----
";

// another P-256 key
const OTHER_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgeFPdwunCXX3uXBGt
LjUXtDsIJyw7fg8ZUJv8Ehvvf5ChRANCAAR1BtDvww9nr9Inv+vIekAu+virYj2K
W7ijTXv4J7+Hr2JMQNe14hZlsFEOAVuesBL+JyG5DpDIaoijuQPQ/Es2
-----END PRIVATE KEY-----
";

// an Ed25519 authority that lasts beyond 2049
const ED: &str = "\
-----BEGIN CERTIFICATE-----
MIIBOjCB7aADAgECAgQAgP8BMAUGAytlcDASMRAwDgYDVQQDDAdFZGdlIENBMCAX
DTI2MTEyMDEzMjAyMVoYDzIwNTExMTIwMTMyMDIxWjASMRAwDgYDVQQDDAdFZGdl
IENBMCowBQYDK2VwAyEAKs8ebTfe2PQZdU2jyWW5dUMlyyWCl36VRzxXEsMazACj
YzBhMB0GA1UdDgQWBBRETYq3O1Z8Noy6DuMVAOJh9RaAsDAfBgNVHSMEGDAWgBRE
TYq3O1Z8Noy6DuMVAOJh9RaAsDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQE
AwIBBjAFBgMrZXADQQAC/r7aIoe1O8nplhCxh9xyH5lEX8oFvWXRATbLbz4bwjBv
l/gQYYdv7JV5c/ARqBiX6PVgYl6c4IkKB1CI/hoC
-----END CERTIFICATE-----
";

// its key
const ED_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIK7PoO0CzIdUwp6RzcF7y6hTjCiUTmHaTYPT8/FXwyOf
-----END PRIVATE KEY-----
";

// P-384
const P384: &str = "\
-----BEGIN CERTIFICATE-----
MIIBnjCCASOgAwIBAgIBBTAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARwMzg0MB4X
DTI2MTEyMDEzMjAyMVoXDTI2MTIyMDEzMjAyMVowDzENMAsGA1UEAwwEcDM4NDB2
MBAGByqGSM49AgEGBSuBBAAiA2IABPh/AgRAwYRUWKXFKNIEP0ynmKGDraNpnk3z
I64Ajz0zlxNbCwvPa/gT+B0ZnMXZavl1G4OT4+4SRIuPU7TEwOyjrH2pwEWSvall
AwAqbGliVKQPjY6rOpMDGWZUktSt8aNTMFEwHQYDVR0OBBYEFPRY2TSi8fr114S0
23t1x4CkY/iFMB8GA1UdIwQYMBaAFPRY2TSi8fr114S023t1x4CkY/iFMA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDaQAwZgIxAJFGS+shUskelJBXJ3YfKr4K
15Gn8OfOZ29SB/0Ig0v6/HoNJf6uIfDpyhHGd8ddwQIxAOqGBFzKvKQnmhRom6oh
ItH8BlmJmjIowvsI7nGFMJQze3JFqX9Kp64NEFyhiGn/7Q==
-----END CERTIFICATE-----
";

// its key
const P384_KEY: &str = "\
-----BEGIN EC PRIVATE KEY-----
MIGkAgEBBDDcl1W1AP25O1i3uxKdQUu6b6eIojCAG2o1pPYWM/TY0mYOBi1Ij/jR
GauUjP03OrGgBwYFK4EEACKhZANiAAT4fwIEQMGEVFilxSjSBD9Mp5ihg62jaZ5N
8yOuAI89M5cTWwsLz2v4E/gdGZzF2Wr5dRuDk+PuEkSLj1O0xMDso6x9qcBFkr2p
ZQMAKmxpYlSkD42OqzqTAxlmVJLUrfE=
-----END EC PRIVATE KEY-----
";

// without the public point
const P384_BARE: &str = "\
-----BEGIN EC PRIVATE KEY-----
MD4CAQEEMNyXVbUA/bk7WLe7Ep1BS7pvp4iiMIAbajWk9hYz9NjSZg4GLUiP+NEZ
q5SM/Tc6saAHBgUrgQQAIg==
-----END EC PRIVATE KEY-----
";

// RSA with 1024 bits
const RSA: &str = "\
-----BEGIN CERTIFICATE-----
MIIB5TCCAU6gAwIBAgIBBTANBgkqhkiG9w0BAQsFADAOMQwwCgYDVQQDDANyc2Ew
HhcNMjYxMTIwMTMyMDIxWhcNMjYxMjIwMTMyMDIxWjAOMQwwCgYDVQQDDANyc2Ew
gZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGBAK8EpKfDRBCQ8HIwgPYhO63EHjH2
3wCJubqE7Fyuh22hMQtv+0uVFGd+3EjMa7Z6CfDEF3aM22GCr/gewZ+B4S+EHwQq
3k0hJbozbne/4EHpYc98escUjzcMiEP3bU8qe+NcYVi3ZcJc/JyEKvjZdeoUktvC
71sFLgMOiBhn6gVRAgMBAAGjUzBRMB0GA1UdDgQWBBTVtfSvAcuSi3o/w6l61EcH
zBYe2zAfBgNVHSMEGDAWgBTVtfSvAcuSi3o/w6l61EcHzBYe2zAPBgNVHRMBAf8E
BTADAQH/MA0GCSqGSIb3DQEBCwUAA4GBAGep26SIIDNsYwt/dzQGt22LJeCHGc69
8tIzRsDOaFBQKBZynMS+4YPBYDqp0dNMRrSz1p+UPt+i+9NiuwbDh+5stHJ7T6wA
EQei0f8I2kbefzEbe0P5Hc3iGzpPP2VXYSbYn3o21cxq3Q2eECze49say6YKh4N7
RCqn3L+AYOVF
-----END CERTIFICATE-----
";

// its key as PKCS#8
const RSA_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBAK8EpKfDRBCQ8HIw
gPYhO63EHjH23wCJubqE7Fyuh22hMQtv+0uVFGd+3EjMa7Z6CfDEF3aM22GCr/ge
wZ+B4S+EHwQq3k0hJbozbne/4EHpYc98escUjzcMiEP3bU8qe+NcYVi3ZcJc/JyE
KvjZdeoUktvC71sFLgMOiBhn6gVRAgMBAAECgYAUtF7qPc5qi0r2p0hKVcoil2Xf
EU52WNSw/RKdMERzMrODn97BpURBrh9POWewsaVFZ11DOAyn73bzymergAjsjOoN
Dq4D99cQO5dgNtfsf8Pjtskz1hOikxZVbRftOqQpxuh1D2nWMDJWrAIPfid4oEcJ
YDKDc/NEVPH7jaEMVQJBAOJSlBE5lPHElLscqNn+W/8eoPdpUmFeEfdNy65oBx8n
TuX3CZxgDxhhFk/Eb9HcpY3j409XkCx/9IAE/wohlNMCQQDF99OQUCKckueA+8yD
ae1SXClhJVAjYGhA8v+vGu56CCBDwXLNywmtyki+drs2UowWbatgWKM9oTP186Vh
ubbLAkEAsjwOV7JdVjlWWDUt1N+4W6YnZjEPq5aF15jwux053pL6U6jFbN1Jhg2P
oKo21bNKvf+mWCnBZQov51IH+FaR+QJAarZnXZBEx//MONQCbwgnfFDfoVUauKcc
K36RYtNyn2dH9R4PA22h/wNeaQTZb7PZfbGKQrok7HC78KVwjZgtNwJBAK8TVMwI
9JbExifQK/3IeJvgf7EQeo8PjIReyhT+izmS83Kz/iT7i37MSbl4XfaKziGyGY8Z
+pAjpWQrWkvS2Lk=
-----END PRIVATE KEY-----
";

// as PKCS#1
const RSA_PKCS1: &str = "\
-----BEGIN RSA PRIVATE KEY-----
MIICXQIBAAKBgQCvBKSnw0QQkPByMID2ITutxB4x9t8Aibm6hOxcrodtoTELb/tL
lRRnftxIzGu2egnwxBd2jNthgq/4HsGfgeEvhB8EKt5NISW6M253v+BB6WHPfHrH
FI83DIhD921PKnvjXGFYt2XCXPychCr42XXqFJLbwu9bBS4DDogYZ+oFUQIDAQAB
AoGAFLRe6j3OaotK9qdISlXKIpdl3xFOdljUsP0SnTBEczKzg5/ewaVEQa4fTzln
sLGlRWddQzgMp+9288pnq4AI7IzqDQ6uA/fXEDuXYDbX7H/D47bJM9YTopMWVW0X
7TqkKcbodQ9p1jAyVqwCD34neKBHCWAyg3PzRFTx+42hDFUCQQDiUpQROZTxxJS7
HKjZ/lv/HqD3aVJhXhH3TcuuaAcfJ07l9wmcYA8YYRZPxG/R3KWN4+NPV5Asf/SA
BP8KIZTTAkEAxffTkFAinJLngPvMg2ntUlwpYSVQI2BoQPL/rxruegggQ8FyzcsJ
rcpIvna7NlKMFm2rYFijPaEz9fOlYbm2ywJBALI8DleyXVY5Vlg1LdTfuFumJ2Yx
D6uWhdeY8LsdOd6S+lOoxWzdSYYNj6CqNtWzSr3/plgpwWUKL+dSB/hWkfkCQGq2
Z12QRMf/zDjUAm8IJ3xQ36FVGrinHCt+kWLTcp9nR/UeDwNtof8DXmkE2W+z2X2x
ikK6JOxwu/ClcI2YLTcCQQCvE1TMCPSWxMYn0Cv9yHib4H+xEHqPD4yEXsoU/os5
kvNys/4k+4t+zEm5eF32is4hshmPGfqQI6VkK1pL0ti5
-----END RSA PRIVATE KEY-----
";

#[test]
fn the_links_of_a_text_tell_what_lints_need() {
    let links = super::authority(&format!("{SECP256K1}{EC}{SECP256K1}")).unwrap().links;
    let facts = |link: &super::Link| (link.uncommon_curve.clone(), link.may_sign_certificates, link.is_repeated);
    let [first, second, third] = links.as_slice() else { panic!("{links:?}") };
    assert_eq!(facts(first), (Some("secp256k1".to_owned()), false, false));
    assert_eq!(facts(second), (None, false, false));
    assert_eq!(facts(third), (Some("secp256k1".to_owned()), false, true));
    for pem in [P384, ED] {
        let links = super::authority(pem).unwrap().links;
        assert!(links.iter().all(|link| link.uncommon_curve.is_none()), "{links:?}");
    }
    assert!(super::authority(ED).unwrap().links.iter().all(|link| link.may_sign_certificates));
}

#[test]
fn only_an_ecdsa_public_key_is_one() {
    let body = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAER3yVFfo5Tpwu8YF6Dis1hRyWFp41\n\
                wampYCSVX+OopfbNDwMAs2Smk6gT7VPLD516JY6lwTDfznCoXtbofmsV4w==";
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
    for good in [body, &body.replace('\n', ""), &pem] {
        assert!(super::is_ecdsa_public_key(good), "{good}");
    }
    let ed25519 = "MCowBQYDK2VwAyEActYpZ8h3B6PFmw7yUJHWQfsxrx3UMt0ZrGSK6vUkEPA=";
    for bad in ["", "SG.correct-horse", ed25519, EC_KEY, EC, &pem.repeat(2)] {
        assert!(!super::is_ecdsa_public_key(bad), "{bad}");
    }
}

/// On a curve that browsers do not know, with a key usage that does not include signing certificates.
const SECP256K1: &str = "\
-----BEGIN CERTIFICATE-----
MIIBhTCCASugAwIBAgIUGUcLHigCPEdmWaF1oQJAYqtaH30wCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHRWRnZSBDQTAgFw0yNjExMjExODA3MzZaGA8yMDUxMDcxMzE4
MDczNlowEjEQMA4GA1UEAwwHRWRnZSBDQTBWMBAGByqGSM49AgEGBSuBBAAKA0IA
BOI9gH2vIFYaNPWM33cT69yoCws6NejPk2gxsZAqDhDhVwFgUsZcbGwgSPCwwCj/
mA+e3AoIGh3vtKAOMO1KlcejYDBeMB0GA1UdDgQWBBT3vqgG5BoOXMg0QJ6cvk5l
+RcHoTAfBgNVHSMEGDAWgBT3vqgG5BoOXMg0QJ6cvk5l+RcHoTAPBgNVHRMBAf8E
BTADAQH/MAsGA1UdDwQEAwIHgDAKBggqhkjOPQQDAgNIADBFAiEAzz0iWy79nydS
VwEuzTKPFdKOyDcUps76dnvkFY7YfQsCIEdErapn+2e2Zld+iyxozpd5YW9WZkRk
W6WIAGioOsA9
-----END CERTIFICATE-----
";
