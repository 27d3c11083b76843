#!/usr/bin/env bash
# verify finds a broken backend: tests/system/verify.sh BUILD. A program in which cpu gives something else than golden,
# each time in another way (tests/support/tools/liar.c).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
liar=${1:-build}/tests/liar

# Exit code 1, nothing but the report on standard output; for each filter what was found.
found() { # LIES PATTERN...
    local lies=$1 code pattern
    shift
    LIE=$lies "$liar" verify --backend cpu --samples 1 >"$work/out" 2>"$work/err"
    code=$?
    cat "$work/out" "$work/err"
    [ $code -eq 1 ] && [ ! -s "$work/err" ] || return
    for pattern in "$@"; do
        grep -qE "$pattern" "$work/out" || { echo "no line: $pattern"; return 1; }
    done
}

check "a bit, the backend, a cell, the number of tables and of rows, the answer" found \
    "smooth=bit normalize=backend axis-sum=cell hist=tables dot=rows compare=answer" \
    "^smooth '.*' on cpu .*\(threads [0-9]+, rows per strip [0-9]+\): image [0-9]+ of seed 1, .*: x 0, y [0-9]+, channel 0 is 0x[0-9a-f]+ and should be 0x[0-9a-f]+ \(1 differ\)" \
    "^normalize .*: another backend ran" \
    "^axis-sum .*: table [a-z]+, row 0, .* is .* and should be .* \([0-9]+ differ\)" \
    "^hist .*: has [0-9]+ tables and should have [0-9]+" \
    "^dot .*: table [a-z]+ has [0-9]+ rows and should be [a-z]+ with [0-9]+" \
    "^compare .*: the answer is (yes|no) \(1 differ\)"

check "a failure, a result that is missing, a table's name and type, the text" found \
    "smooth=failure normalize=failure axis-sum=type hist=text dot=missing compare=name" \
    "^smooth .*: cpu: broke down" \
    "^verify: [0-9]+ runs failed" \
    "^axis-sum .*: table [a-z]+ has" \
    "^hist .*: the text for people is another one" \
    "^dot .*: the result is missing" \
    "^compare .*: table elsewhere has [0-9]+ rows and should be"

json_tells() { # the same as JSON, of a file, too
    LIE="hist=cell smooth=bit" "$liar" verify --backend cpu --samples 1 --json samples/ramp.pfm >"$work/out"
    [ $? -eq 1 ] && python3 - "$work/out" <<'P'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    made = json.load(file)
assert made["differences"] > 0 and made["failed_runs"] == 0, made
assert any("samples/ramp.pfm" in finding for finding in made["findings"]), made["findings"]
wrong = {row["filter"] for row in made["table"] if row["differences"]}
assert wrong == {"hist", "smooth"}, wrong
P
}
clean_names() { # a file's name in a finding is printable
    local name=$work/$'n\xc2\x9b\xff\e.pgm'
    printf 'P5\n2 1\n255\n\1\2' >"$name"
    LIE="hist=cell" "$liar" verify --backend cpu --samples 1 "$name" >"$work/out"
    grep -q '/n????.pgm, 2x1 grey u8:' "$work/out" && ! LC_ALL=C grep -q $'[\x80-\x9f\e]' "$work/out"
}
check "a finding names its file in printable characters" clean_names

nothing_wrong() { # and what could not be compared is told
    CUDA_VISIBLE_DEVICES='' "$liar" verify --samples 1 >"$work/out" &&
        grep -q '^verify: [0-9]* samples compared, 0 differences' "$work/out" &&
        grep -qi 'cuda' "$work/out"
}
check "nothing is wrong, and there is no device" nothing_wrong

if command -v python3 >/dev/null 2>&1; then
    check "JSON tells of the differences" json_tells
else
    skip 1 "verify as JSON: no python3"
fi
check_sum
