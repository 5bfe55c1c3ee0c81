#!/bin/sh
# Compares the server with the manifests of one source, and changes nothing.
# Usage: drift.sh SOURCE FOLDER
#
# Exits with 0 if they agree, with 2 if they differ, and otherwise with edgewright's code. The report is in
# $REVIEW_DIR/drift-SOURCE.md. Needs EDGEWRIGHT_SERVER and EDGEWRIGHT_TOKEN, of a key that may plan. WITH has the
# surrounding manifests of FOLDER, if there are any.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 2 ] || fail "usage: drift.sh SOURCE FOLDER"
source="$1" folder="$2"
check_source "$source"
require edgewright
require_variables EDGEWRIGHT_SERVER

report="$REVIEW_DIR/drift-$source.md"
prepare_review_dir "$report"
status=0
with_surrounding plan "$folder" --source "$source" --detailed-exitcode --format markdown --output "$report" || status=$?
case "$status" in
    0) echo "Source '$source' is in sync." ;;
    2)
        summarize "$report"
        echo "Source '$source' differs from its manifests: somebody else has changed it, or a change was not applied." >&2
        ;;
    *) echo "Source '$source' could not be compared (exit code $status)." >&2 ;;
esac
exit "$status"
