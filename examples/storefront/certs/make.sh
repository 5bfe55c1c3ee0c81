#!/bin/sh
# Regenerates the demo certificates in this folder. Requires OpenSSL 3. None of them protects anything.
# Discards the keys of the authorities, because anyone with such a key could sign a client certificate.
set -eu
umask 077 # a private key is never readable by others, not even while it is being written
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/ca.cnf" <<CNF
[ca]
default_ca = demo
[demo]
database = $tmp/index.txt
new_certs_dir = $tmp
rand_serial = yes
default_md = sha256
default_startdate = 20250101000000Z
default_enddate = 21250101000000Z
policy = any
unique_subject = no
email_in_dn = no
[any]
countryName = optional
stateOrProvinceName = optional
localityName = optional
organizationName = optional
organizationalUnitName = optional
commonName = supplied
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[clients]
basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign,cRLSign
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
[shop]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature,keyEncipherment
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:shop.example.com,DNS:www.shop.example.com,IP:192.0.2.10
[wildcard]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = DNS:*.example.com
[idp]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
subjectKeyIdentifier = hash
CNF
: >"$tmp/index.txt"
org="/C=DE/ST=Berlin/L=Berlin/O=Example Shop GmbH"

ec() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }
rsa() { openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$1" 2>/dev/null; }
# self KEY SECTION SUBJECT OUT: a certificate signed by its own key
self() {
    openssl req -new -key "$1" -subj "$3" -out "$tmp/csr"
    openssl ca -config "$tmp/ca.cnf" -batch -notext -selfsign -keyfile "$1" \
        -extensions "$2" -in "$tmp/csr" -out "$4" 2>/dev/null
}
# leaf KEY SECTION SUBJECT OUT: a chain, leaf first, signed by the web authority
leaf() {
    openssl req -new -key "$1" -subj "$3" -out "$tmp/csr"
    openssl ca -config "$tmp/ca.cnf" -batch -notext -cert web-ca.pem \
        -keyfile "$tmp/web-ca.key" -extensions "$2" -in "$tmp/csr" -out "$tmp/leaf.pem" 2>/dev/null
    cat "$tmp/leaf.pem" web-ca.pem >"$4"
}

# The authority of our server certificates.
ec "$tmp/web-ca.key"
self "$tmp/web-ca.key" root "$org/OU=Platform/CN=Example Shop Demo Web CA" web-ca.pem

# Server certificates: one RSA, one ECDSA.
rsa shop.key.pem
leaf shop.key.pem shop "$org/OU=Shop/CN=shop.example.com" shop.chain.pem
ec wildcard.key.pem
leaf wildcard.key.pem wildcard "$org/OU=Platform/CN=*.example.com" wildcard.chain.pem

# The authorities of client certificates (mutual TLS).
ec "$tmp/staff.key"
self "$tmp/staff.key" clients "$org/OU=Platform/CN=Example Shop Demo Staff Devices CA" \
    staff-devices.pem
rsa "$tmp/partner.key"
self "$tmp/partner.key" clients "/C=NL/O=Parcel Partners BV/CN=Parcel Partners Demo Devices CA" \
    partner-devices.pem

# The signing certificate of the demo identity provider: its base64 stands in ../saml/idp.xml.
rsa "$tmp/idp.key"
self "$tmp/idp.key" idp "$org/OU=Identity/CN=idp.example.com" "$tmp/idp.pem"
body=$(grep -v CERTIFICATE "$tmp/idp.pem")
awk -v body="$body" '
    /<ds:X509Certificate>/ { print "<ds:X509Certificate>"; print body; skip = 1 }
    /<\/ds:X509Certificate>/ { print "</ds:X509Certificate>"; skip = 0; next }
    !skip { print }
' ../saml/idp.xml >"$tmp/idp.xml"
cat "$tmp/idp.xml" >../saml/idp.xml
# What is public may be read by all; the keys stay with their owner.
chmod 0644 ./*.pem ../saml/idp.xml
chmod 0600 ./*.key.pem
