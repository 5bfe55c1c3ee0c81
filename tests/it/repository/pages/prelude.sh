# What stands before the commands of a page. A failure ends the script and names its command.
set -Eeuo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
trap stop EXIT
logs="$PWD/.logs" count=0 running=()
mkdir "$logs"

# Stops everything that runs in the background.
stop() {
    for process in ${running[@]+"${running[@]}"}; do
        kill "$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
    done
    running=()
}

# Starts a command, and waits until it says that it is ready: in_background WORDS COMMAND…
in_background() {
    local ready="$1" log="$logs/$count.log"
    count=$((count + 1))
    shift
    "$@" >"$log" 2>&1 &
    local process="$!"
    running+=("$process")
    for _ in $(seq 600); do
        ! grep -q "$ready" "$log" || return 0
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    cat "$log" >&2
    echo "it did not start: $*" >&2
    return 1
}

# Repeats the commands on standard input until their output has a line for each pattern: repeat_until PATTERN…
repeat_until() {
    local commands said="" missing="" pattern
    commands="$(cat)"
    for _ in $(seq 300); do
        said="$(eval "$commands" 2>&1)" || true
        missing=""
        for pattern in "$@"; do
            grep -Eq "$pattern" <<<"$said" || missing="$pattern"
        done
        if [ -z "$missing" ]; then
            printf '%s\n' "$said"
            return 0
        fi
        sleep 0.1
    done
    printf '%s\nno line of this output is %s\n' "$said" "$missing" >&2
    return 1
}
