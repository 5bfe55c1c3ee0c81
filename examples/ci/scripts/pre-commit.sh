#!/bin/sh
# Checks the form and the content of manifests before a commit.
# Usage: pre-commit.sh [PATH…]   (default: manifests)
#
# Unset secrets are assumed. WITH has the surrounding manifests, if there are any, and EDGEWRIGHT_SOURCE their source.
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
# Secrets are for the jobs that plan, and the machine of an author has none. The paths in WITH are separated by spaces.
# shellcheck disable=SC2086
for path in ${WITH:-}; do
    set -- "$@" --with "$path"
done
edgewright validate "$@" --secrets=assume
