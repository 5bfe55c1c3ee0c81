#!/bin/sh
# Installs edgewright from a Debian package for the jobs of CI: only the program, no service.
# Usage: install.sh FOLDER
#
# Needs PACKAGE_URL, and PACKAGE_SHA256 to check what was downloaded. The program is FOLDER/edgewright.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 1 ] || fail "usage: install.sh FOLDER"
folder="$1"
require curl dpkg-deb sha256sum
require_variables PACKAGE_URL PACKAGE_SHA256
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
curl --silent --show-error --fail --location --retry 3 --output "$scratch/edgewright.deb" "$PACKAGE_URL"
printf '%s  %s\n' "$PACKAGE_SHA256" "$scratch/edgewright.deb" | sha256sum --check --quiet ||
    fail "the package at $PACKAGE_URL is not the expected one"
dpkg-deb --extract "$scratch/edgewright.deb" "$scratch/package"
mkdir -p "$folder"
mv "$scratch/package/usr/bin/edgewright" "$folder/edgewright"
"$folder/edgewright" --version
