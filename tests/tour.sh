#!/usr/bin/env bash
# The session of docs/tour.md, had again: tests/tour.sh BUILD [list]. It must go as it is written there, but for times,
# rates and what this machine is. The terminal that it is had in is tested first.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=${1:-build}
# What is typed there, for tests/doc_commands.py.
[ "${2:-}" != list ] || { sed -n 's/^\$ //p' docs/tour.md; exit; }
if ! command -v python3 >/dev/null; then
    skip 2 "the tour: there is no python3 (Debian's package python3)"
elif grep -q -e --coverage "$build/config"; then
    skip 2 "the tour: a build that counts branches is not one to install"
else
    check "the terminal" python3 -B tests/terminal_check.py
    check "the tour" python3 -B docs/make-tour.py "$build" --check
    while read -r line; do skip 1 "the tour: $line"; done < <(sed -n 's/^LEFT OUT *//p' "$work/log")
fi
check_sum
