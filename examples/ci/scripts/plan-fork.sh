#!/bin/sh
# Checks the change of a fork, which has no secrets and no token: nothing here reaches the server.
# Usage: plan-fork.sh SOURCE FOLDER BASE
#
# First validates the source, with unset secrets assumed. Then compares it with BASE, the branch that the change is for.
# $REVIEW_DIR/plan-SOURCE.md is the difference, or the findings if there is none to show. WITH has the surrounding
# manifests of FOLDER, if there are any. Needs the history of BASE: fetch it without a depth. Exits with edgewright's code: 3 for invalid manifests, 4 for a
# change that opens access or weakens an invariant.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 3 ] || fail "usage: plan-fork.sh SOURCE FOLDER BASE"
source="$1" folder="$2" base="$3"
check_source "$source"
require edgewright git
# A fork cannot have them. If they are set, this is the wrong script.
unset EDGEWRIGHT_SERVER EDGEWRIGHT_TOKEN

report="$REVIEW_DIR/plan-$source.md" difference="$REVIEW_DIR/diff-$source.md"
prepare_review_dir "$report" "$difference"
status=0
with_surrounding validate "$folder" --source "$source" --secrets=assume --format markdown --output "$report" >/dev/null ||
    status=$?
if [ "$status" = 0 ]; then
    # Whoever opens access or weakens an invariant on purpose allows it in the manifest, with a reason. With ACCESS_OPENED=warn, the report only says so first.
    deny="--deny access-opened --deny invariant-weakened"
    [ "${ACCESS_OPENED:-deny}" = deny ] || deny=""
    # If BASE cannot be read, the report keeps the findings in the change.
    # shellcheck disable=SC2086
    with_surrounding diff --rev "$base...HEAD" "$folder" --source "$source" --secrets=assume --behaviour $deny \
        --format markdown --output "$difference" || status=$?
    case "$status" in
        0 | 4) mv "$difference" "$report" ;;
        *)
            rm -f "$difference"
            echo "The change of source '$source' is valid, but could not be compared with $base." >&2
            ;;
    esac
fi
summarize "$report"
exit "$status"
