#!/bin/sh
# Applies the reviewed plan of one source through the server, and nothing else.
# Usage: apply.sh SOURCE FOLDER
#
# Reads $REVIEW_DIR/plan-SOURCE.json. If the desired state or the calls to make are no longer those of the review, whoever
# caused that, or there was no review, nothing is applied: the script makes the current plan, and
# exits with 5. If that plan is empty, for example because a job is run again, it exits with 0.
# Needs EDGEWRIGHT_SERVER and EDGEWRIGHT_TOKEN, of a key that may apply the source.
#
# A plan that opens access, because it removes a login or another restriction, or that weakens an invariant is applied only with APPROVED, which the jobs set
# that somebody has approved. Otherwise, the script exits with 5.
#
# With BEFORE, the commit before the push, a push that changes neither FOLDER nor the paths in WITH and SHARED applies nothing:
# two teams that merge at the same time would otherwise apply old manifests of each other. WITH has the surrounding manifests of FOLDER.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 2 ] || fail "usage: apply.sh SOURCE FOLDER"
source="$1" folder="$2"
check_source "$source"
require edgewright
require_variables EDGEWRIGHT_SERVER

# The paths in WITH and SHARED are separated by spaces. After the first push of a branch, there is no commit before.
# shellcheck disable=SC2086
if [ -n "${BEFORE:-}" ] && git cat-file -e "$BEFORE^{commit}" 2>/dev/null &&
    git diff --quiet "$BEFORE" HEAD -- "$folder" ${WITH:-} ${SHARED:-}; then
    echo "The push does not change source '$source'."
    exit 0
fi

errors=""
show_errors() {
    [ -z "$errors" ] || printf '%s\n' "$errors" >&2
}

# The log has the first plan of the run: those after it are the same.
exec 3>&1

plan="$REVIEW_DIR/plan-$source.json" report="$REVIEW_DIR/plan-$source.md"
prepare_review_dir "$report"
if [ ! -f "$plan" ]; then
    reason="There is no reviewed plan of source '$source'."
    echo "$reason The current plan:"
else
    if [ -z "${APPROVED:-}" ]; then
        # What opens or is weakened in the current plan is so in the same plan of the review. Without a plan, nobody knows.
        with_surrounding plan "$folder" --source "$source" --format markdown --output "$report" >&3 || {
            status=$?
            echo "The plan of source '$source' failed. Nothing was applied." >&2
            exit "$status"
        }
        opens=0
        grep -qE 'access-opened|invariant-weakened' "$report" || opens=$?
        if [ "$opens" = 0 ]; then
            summarize "$report"
            echo "The plan of source '$source' weakens an invariant or opens access. Nothing was applied. Apply it with a run that asks for approval." >&2
            exit 5
        fi
        [ "$opens" = 1 ] || fail "cannot read $report"
        exec 3>/dev/null
    fi
    # The errors of a job that is run again matter to nobody: the plan is stale because it was applied.
    status=0
    errors="$(with_surrounding reconcile "$folder" --source "$source" --plan "$plan" 2>&1 >&3)" || status=$?
    exec 3>/dev/null
    if [ "$status" != 5 ]; then
        show_errors
        exit "$status"
    fi
    reason="The reviewed plan of source '$source' is stale."
fi

# For the summary, and in case nothing is left to do. The log has this plan already if there was a reviewed one.
rm -f "$report"
status=0
with_surrounding plan "$folder" --source "$source" --detailed-exitcode --format markdown --output "$report" >&3 || status=$?
case "$status" in
    0) echo "Source '$source' is in sync: there is nothing to apply." ;;
    2)
        show_errors
        summarize "$report"
        echo "$reason Nothing was applied. Review the current plan above, and apply it with a run that asks for approval." >&2
        exit 5
        ;;
    *)
        show_errors
        exit "$status"
        ;;
esac
