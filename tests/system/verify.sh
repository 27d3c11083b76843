#!/usr/bin/env bash
# verify finds a backend that differs from golden: tests/system/verify.sh BUILD. The program with wrapped library calls
# (tests/support/tools/liar.c) alters one kind of result per filter. It has one case per filter; the last check runs all.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}
liar=$build/tests/liar
export LIE_CASES=1

# Expect exit code 1, the findings of each filter on standard output, and no other output.
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

check "wrong bit, backend, cell, numbers of tables and rows, answer" found \
    "smooth=bit normalize=backend axis-sum=cell hist=tables dot=rows compare=answer" \
    "^smooth '.*' on cpu .*\(threads [0-9]+, rows per strip [0-9]+\): image [0-9]+ of seed 1, .*: x 0, y [0-9]+, channel 0: expected 0x[0-9a-f]+, got 0x[0-9a-f]+ \(1 differ\)" \
    "^normalize .*: another backend ran" \
    "^axis-sum .*: table [a-z]+, row 0, .*: expected .*, got .* \([0-9]+ differ\)" \
    "^hist .*: expected [0-9]+ tables, got [0-9]+" \
    "^dot .*: expected table [a-z]+ with [0-9]+ rows, got [a-z]+ with [0-9]+" \
    "^compare .*: expected the test to (pass, but it failed|fail, but it passed) \(1 differ\)"

check "failure, missing result, wrong table name and type, wrong text" found \
    "smooth=failure normalize=failure axis-sum=type hist=text dot=missing compare=name" \
    "^smooth .*: cpu: device failure" \
    "^verify: [0-9]+ runs failed" \
    "^axis-sum .*: expected table [a-z]+ with" \
    "^hist .*: the result text differs" \
    "^dot .*: expected a result, got none" \
    "^compare .*: expected table [a-z]+ with [0-9]+ rows, got elsewhere with"

json_findings() { # the same as JSON, with files
    LIE="hist=cell smooth=bit" "$liar" verify --backend cpu --samples 1 --json "$work/absent.png" samples/ramp.pfm \
        >"$work/out" 2>/dev/null
    [ $? -eq 1 ] && python3 - "$work/out" <<'P'
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    made = json.load(file)
assert [name.rpartition("/")[2] for name in made["unreadable"]] == ["absent.png"], made["unreadable"]
assert made["differences"] > 0 and made["failed_runs"] == 0, made
assert any("samples/ramp.pfm" in finding for finding in made["findings"]), made["findings"]
wrong = {row["filter"] for row in made["results"] if row["differences"]}
assert wrong == {"hist", "smooth"}, wrong
P
}
clean_names() { # a finding prints its file name in printable characters
    local name=$work/$'n\xc2\x9b\xff\e.pgm'
    printf 'P5\n2 1\n255\n\1\2' >"$name"
    LIE="hist=cell" "$liar" verify --backend cpu --samples 1 "$name" >"$work/out"
    grep -q '/n????.pgm, 2x1 grey u8:' "$work/out" && ! LC_ALL=C grep -q $'[\x80-\x9f\e]' "$work/out"
}
check "file names in findings are printable" clean_names

check_unreadable() { # files that cannot be read, or have another shape: exit code 1, and their number
    head -c 100 samples/page.png >"$work/short.raw"
    "$liar" verify --samples 1 --backend cpu "$@" "$work/absent.png" >"$work/out" 2>"$work/err"
    [ $? -eq 1 ] && grep -q '^verify: [0-9]* samples compared, 0 differences, [12] unreadable files\?$' "$work/out" &&
        grep -q '^gpufilter: .*absent.png: cannot open: No such file' "$work/err"
}
check "a file that cannot be read" check_unreadable
wrong_shape() { check_unreadable --raw 8x8:u16 "$work/short.raw" && grep -q '^gpufilter: .*short.raw: has 100 bytes' "$work/err"; }
check "a raw file of another size" wrong_shape

printf 'II*\0\10\0\0\0\7\0\0\1\4\0\1\0\0\0\10\0\0\0\1\1\4\0\1\0\0\0\3\0\0\0\3\1\3\0\1\0\0\0\4\0\0\0\6\1\3\0\1\0\0\0\0\0\0\0\21\1\4\0\1\0\0\0b\0\0\0\26\1\4\0\1\0\0\0\3\0\0\0\27\1\4\0\1\0\0\0\4\0\0\0\0\0\0\0\300\4\0\100' >"$work/fax.tif"
printf 'Pf\n1 1\n-1\n\0\0\300\177' >"$work/nan.pfm" # hist --range data refuses it on every backend
no_difference() { # every case; lines fit into 80 columns, except the reason why there is no device; damage is reported
    CUDA_VISIBLE_DEVICES='' "$build/gpufilter" verify --samples 1 samples/ramp.pfm "$work/fax.tif" "$work/nan.pfm" >"$work/out" 2>"$work/err" &&
        grep -q 'fax.tif: warning: 1 of 3 rows of the fax are damaged' "$work/err" &&
        grep -q '^verify: [0-9]* samples compared, 0 differences$' "$work/out" && grep -qi 'cuda' "$work/out" &&
        ! awk 'length > 80 && !/^(cuda( [0-9]+)?|skipped): /' "$work/out" | grep .
}
check "no difference" no_difference

if command -v python3 >/dev/null 2>&1; then
    check "JSON lists the differences" json_findings
else
    skip 1 "findings as JSON: no python3"
fi
check_summary
