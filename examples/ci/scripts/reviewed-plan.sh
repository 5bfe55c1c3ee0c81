#!/bin/sh
# Finds the saved plan that was reviewed with the merged change.
# Usage: reviewed-plan.sh SOURCE [JOB]
#
# GitHub: writes `run` and `name` of the artifact to $GITHUB_OUTPUT, for actions/download-artifact. Needs GITHUB_API_URL,
# GITHUB_REPOSITORY, GITHUB_SHA and GITHUB_TOKEN.
# GitLab: downloads the plan from the job named JOB to $REVIEW_DIR. Needs CI_API_V4_URL, CI_PROJECT_ID, CI_COMMIT_SHA
# and GITLAB_TOKEN.
#
# It is no error if there is no plan, for example after a direct push: apply.sh decides what that means. Whoever can write
# artifacts cannot forge one: a saved plan is tied to the server by a digest with the server's key, and it only permits
# what the server computes from the merged manifests.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 1 ] || [ $# = 2 ] || fail "usage: reviewed-plan.sh SOURCE [JOB]"
source="$1" job="${2:-}"
check_source "$source"
require curl jq

# Reads a part of a response: part URL PROGRAM. A forge that does not answer is an error: in a pipe it would look like an
# empty response.
part() {
    response="$(read_api "$1")" || exit
    printf '%s' "$response" | jq --raw-output "$2"
}

none() {
    echo "No reviewed plan of source '$source' was found: $1."
    exit 0
}

if is_gitlab; then
    require_variables CI_API_V4_URL CI_PROJECT_ID CI_COMMIT_SHA
    project="$CI_API_V4_URL/projects/$CI_PROJECT_ID"
    request="$(part "$project/repository/commits/$CI_COMMIT_SHA/merge_requests" \
        '[.[] | select(.state == "merged") | .iid] | first // empty')"
    [ -n "$request" ] || none "the commit is of no merge request"
    pipeline="$(part "$project/merge_requests/$request/pipelines" '.[0].id // empty')"
    [ -n "$pipeline" ] || none "merge request $request has no pipeline"
    # The name of a job can have any character, so it is not a part of the program.
    export JOB="$job"
    id="$(part "$project/pipelines/$pipeline/jobs?per_page=100" \
        '[.[] | select(.name == env.JOB and .status == "success") | .id] | first // empty')"
    [ -n "$id" ] || none "pipeline $pipeline has no finished job '$job'"
    plan="$REVIEW_DIR/plan-$source.json"
    prepare_review_dir "$plan" "$plan.part"
    api GET "$project/jobs/$id/artifacts/$plan" --location --retry 3 --output "$plan.part"
    mv "$plan.part" "$plan"
    echo "Merge request $request has the reviewed plan of source '$source'."
    exit 0
fi

require_variables GITHUB_API_URL GITHUB_REPOSITORY GITHUB_SHA
repository="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY"
head="$(part "$repository/commits/$GITHUB_SHA/pulls" \
    '[.[] | select(.merged_at != null) | .head.sha] | first // empty')"
[ -n "$head" ] || none "the commit is of no pull request"
name="edgewright-plan-$source-$head"
run="$(part "$repository/actions/artifacts?name=$name&per_page=1" \
    '[.artifacts[] | select(.expired | not) | .workflow_run.id] | first // empty')"
[ -n "$run" ] || none "there is no artifact $name"
require_variables GITHUB_OUTPUT
printf 'run=%s\nname=%s\n' "$run" "$name" >>"$GITHUB_OUTPUT"
echo "Run $run has the reviewed plan of source '$source'."
