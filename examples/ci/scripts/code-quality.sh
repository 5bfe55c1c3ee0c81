#!/bin/sh
# Validates manifests and writes a code quality report for GitLab.
# Usage: code-quality.sh FOLDER REPORT [OPTION…]   (options of `edgewright validate`)
#
# Exits with the code of `edgewright validate`. The report has the fingerprints of the SARIF report, so a finding keeps
# its identity when the lines above it change.
set -eu
. "$(dirname "$0")/common.sh"

[ $# -ge 2 ] || fail "usage: code-quality.sh FOLDER REPORT [OPTION…]"
folder="$1" report="$2"
shift 2
require edgewright jq

sarif="$report.sarif"
# A change can contain a link in the place of a report.
rm -f "$report" "$sarif"
status=0
with_surrounding validate "$folder" "$@" --format sarif --output "$sarif" || status=$?
jq '[.runs[0].results[] | {
    description: .message.text,
    check_name: .ruleId,
    fingerprint: .partialFingerprints["edgewrightFault/v1"],
    severity: (if .level == "error" then "critical" else "minor" end),
    location: (.locations[0].physicalLocation | {
        path: .artifactLocation.uri,
        lines: {begin: (.region.startLine // 1)}
    })
}]' "$sarif" >"$report"
rm -f "$sarif"
exit "$status"
