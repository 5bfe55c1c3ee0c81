#!/bin/sh
# Posts the plan of a source as a comment on the pull or merge request, and replaces the comment of an earlier run.
# Usage: comment.sh SOURCE
#
# GitHub: needs GITHUB_API_URL, GITHUB_REPOSITORY (both are set in a workflow), GITHUB_TOKEN and PULL_REQUEST, its number.
# GitLab: needs CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID (set in a pipeline) and GITLAB_TOKEN.
set -eu
. "$(dirname "$0")/common.sh"

[ $# = 1 ] || fail "usage: comment.sh SOURCE"
source="$1"
check_source "$source"
require curl jq

report="$REVIEW_DIR/plan-$source.md"
[ -s "$report" ] || fail "$report does not exist: run plan.sh first"
# One comment per source: two teams must not overwrite each other's.
marker="<!-- edgewright-ci $source -->"
body="$REVIEW_DIR/comment-$source.json" found="$REVIEW_DIR/comments-$source.json"
prepare_review_dir "$body" "$found"
{
    # The backquotes are Markdown.
    # shellcheck disable=SC2016
    printf '%s\n**Source `%s`**\n\n' "$marker" "$source"
    cat "$report"
} | jq --raw-input --slurp '{body: .}' >"$body"

if is_gitlab; then
    require_variables CI_API_V4_URL CI_PROJECT_ID CI_MERGE_REQUEST_IID
    project="$CI_API_V4_URL/projects/$CI_PROJECT_ID"
    comments="$project/merge_requests/$CI_MERGE_REQUEST_IID/notes"
    author="$(read_api "$CI_API_V4_URL/user")"
    author="$(printf '%s' "$author" | jq --raw-output .username)"
    name=.author.username update=PUT
else
    require_variables GITHUB_API_URL GITHUB_REPOSITORY PULL_REQUEST
    repository="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY"
    comments="$repository/issues/$PULL_REQUEST/comments"
    author="${COMMENT_AUTHOR:-github-actions[bot]}"
    name=.user.login update=PATCH
fi

# Anybody can write a comment that starts with the marker; only this bot's is replaced.
id="" page=1
while [ -z "$id" ]; do
    read_api "$comments?per_page=100&page=$page" >"$found"
    id="$(jq --raw-output --arg marker "$marker" --arg author "$author" \
        "[.[] | select($name == \$author and ((.body // \"\") | startswith(\$marker))) | .id] | first // empty" "$found")"
    [ "$(jq length "$found")" -ge 100 ] || break
    page=$((page + 1))
done
rm -f "$found"

if [ -z "$id" ]; then
    method=POST url="$comments"
elif is_gitlab; then
    method="$update" url="$comments/$id"
else
    method="$update" url="$repository/issues/comments/$id"
fi
api "$method" "$url" --header 'Content-Type: application/json' --data-binary "@$body" >/dev/null
rm -f "$body"
echo "The comment has the plan of source '$source'."
