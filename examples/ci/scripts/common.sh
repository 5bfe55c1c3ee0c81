# What the scripts share. They source this file; it is not a command.
# shellcheck shell=sh

# Reports and saved plans go here. CI keeps the folder as an artifact.
REVIEW_DIR="${REVIEW_DIR:-edgewright-review}"

fail() {
    echo "$(basename "$0"): $1" >&2
    exit 1
}

# A change can contain the folder as a link to another one of this machine, or with links in the place of its files. Removes
# the named files: those of an earlier run, or of the change, must not be taken for this one's.
prepare_review_dir() {
    folder_of_reports="${REVIEW_DIR%/}"
    [ ! -L "$folder_of_reports" ] || fail "$folder_of_reports is a link: remove it, or set REVIEW_DIR to another folder"
    mkdir -p "$REVIEW_DIR"
    rm -f "$@"
}

require() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || fail "$tool is not installed"
    done
}

# `${NAME:?}` exits with 2 in some shells, which means pending changes.
require_variables() {
    for variable in "$@"; do
        eval "value=\${$variable:-}"
        [ -n "$value" ] || fail "set $variable"
    done
}

# Runs edgewright with the surrounding manifests of WITH: their paths, separated by spaces. The folder uses their names and module
# sets.
with_surrounding() {
    # shellcheck disable=SC2086
    for path in ${WITH:-}; do
        set -- "$@" --with "$path"
    done
    edgewright "$@"
}

# The name of a source is a part of file names here.
check_source() {
    case "$1" in
        '' | .* | -* | *[!A-Za-z0-9._-]*) fail "'$1' cannot be the name of a source in CI: use letters, digits, '-', '_' and '.'" ;;
    esac
}

# Appends a report to the summary of a GitHub job. Elsewhere, the job's log has its text.
summarize() {
    if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -s "$1" ]; then
        cat "$1" >>"$GITHUB_STEP_SUMMARY"
    fi
}

is_gitlab() {
    [ -n "${GITLAB_CI:-}" ]
}

# Calls the API of the forge: api METHOD URL [curl option…]. The token comes from standard input, because other users of
# the machine can read the arguments of a process.
api() {
    method="$1" url="$2"
    shift 2
    if is_gitlab; then
        require_variables GITLAB_TOKEN
        authorization="PRIVATE-TOKEN: $GITLAB_TOKEN"
    else
        require_variables GITHUB_TOKEN
        authorization="Authorization: Bearer $GITHUB_TOKEN"
    fi
    printf '%s\n' "$authorization" |
        curl --silent --show-error --fail --request "$method" --header @- --max-time 60 "$@" "$url"
}

# Reads from the API. Only reading can be repeated: another try at a comment could make two.
read_api() {
    api GET "$1" --retry 3
}
