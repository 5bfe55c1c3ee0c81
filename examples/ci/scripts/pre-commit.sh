#!/bin/sh
# Checks the form and the content of manifests before a commit.
# Usage: pre-commit.sh [PATH…]   (default: manifests)
#
# As a hook of Git: ln -s ../../ci/scripts/pre-commit.sh .git/hooks/pre-commit
set -eu

[ $# -gt 0 ] || set -- manifests
command -v edgewright >/dev/null || { echo "pre-commit: edgewright is not installed" >&2; exit 1; }
status=0
edgewright fmt --check "$@" || status=$?
if [ "$status" != 0 ]; then
    echo "Run \`edgewright fmt $*\` and add the files again." >&2
    exit "$status"
fi
edgewright validate "$@"
