#!/bin/sh
# Plans one source for a review, through the server.
# Usage: plan.sh SOURCE FOLDER
#
# Writes plan-SOURCE.md, the comment, and plan-SOURCE.json, the saved plan that apply.sh applies, to $REVIEW_DIR. Exits
# with edgewright's code: 0 with or without changes, 3 for invalid manifests, 4 for a refused plan, such as one that opens access or
# weakens an invariant.
# With BASE, the commit that the change begins from, warnings that it has, too, are only counted. Fetch its history.
# Needs EDGEWRIGHT_SERVER and EDGEWRIGHT_TOKEN, of a key that may plan. WITH has the surrounding manifests of FOLDER, if there are any.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 2 ] || fail "usage: plan.sh SOURCE FOLDER"
source="$1" folder="$2"
check_source "$source"
require edgewright
require_variables EDGEWRIGHT_SERVER

report="$REVIEW_DIR/plan-$source.md" plan="$REVIEW_DIR/plan-$source.json"
prepare_review_dir "$report" "$plan"
# Whoever opens access or weakens an invariant on purpose allows it in the manifest, with a reason. With ACCESS_OPENED=warn, the comment only says so first.
deny="--deny access-opened --deny invariant-weakened"
[ "${ACCESS_OPENED:-deny}" = deny ] || deny=""
status=0
# shellcheck disable=SC2086
with_surrounding plan "$folder" --source "$source" ${BASE:+--base "$BASE"} --behaviour $deny --format markdown --output "$report" \
    --out "$plan" || status=$?
summarize "$report"
exit "$status"
