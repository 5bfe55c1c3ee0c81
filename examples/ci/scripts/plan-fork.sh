#!/bin/sh
# Checks the change of a fork, which has no secrets and no token: nothing here reaches the server.
# Usage: plan-fork.sh SOURCE FOLDER BASE
#
# First plans the whole source as a new one, with unset secrets assumed, so that every rule is checked. Then compares it
# with BASE, the branch that the change is for, and writes the difference to $REVIEW_DIR/plan-SOURCE.md.
# Needs the history of BASE: fetch it without a depth.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 3 ] || fail "usage: plan-fork.sh SOURCE FOLDER BASE"
source="$1" folder="$2" base="$3"
check_source "$source"
require edgewright git
# A fork cannot have them. If they are set, this is the wrong script.
unset EDGEWRIGHT_SERVER EDGEWRIGHT_TOKEN

mkdir -p "$REVIEW_DIR"
report="$REVIEW_DIR/plan-$source.md"
status=0
edgewright plan "$folder" --source "$source" --secrets=assume --store "$REVIEW_DIR/no-store" \
    --format markdown --output "$report" >/dev/null || status=$?
# A new source deletes nothing and adopts nothing, so what fails here is in the manifests. The report has it.
if [ "$status" = 0 ]; then
    edgewright diff --rev "$base...HEAD" "$folder" --secrets=assume --format markdown --output "$report" || status=$?
fi
summarize "$report"
exit "$status"
