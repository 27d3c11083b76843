#!/usr/bin/env bash
# What `make demo` and `make test` do and say: tests/system/make.sh BUILD.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
cores=$(getconf _NPROCESSORS_ONLN)

jobs_of() { make -n "$@" | grep -o -e '-directory.* all'; } # ARGUMENTS...: of make
all_cores() { [ "$(jobs_of demo CUDA=0)" = "-directory -j$cores all" ] && [ "$(jobs_of test CUDA=0)" = "-directory -j$cores all" ]; }
as_told() { [ "$(jobs_of -j3 demo CUDA=0)" = "-directory  all" ] && [ "$(jobs_of -j1 demo CUDA=0)" = "-directory  all" ]; }
check "demo and test use all cores" all_cores
check "or as many as make was told" as_told

# A run of tests that are not ours.
mkdir -p "$work/tree/tests" "$work/tree/built/tests"
cp tests/run.sh "$work/tree/tests"
cd "$work/tree" || exit
program() { # NAME CODE TEXT: prints that, and exits so
    printf '#!/bin/sh\nprintf "%%s\\n" "%s"\nexit %d\n' "$3" "$2" >"$1" && chmod +x "$1"
}
program built/tests/test_good 0 '[  PASSED  ] 3 test(s).'
program built/tests/test_half 0 'SKIP 1: no GPU
SKIP 1: there is no moon
[  PASSED  ] 1 test(s).
[  SKIPPED ] 2 test(s), listed below:'
program built/tests/test_bad 1 '[  PASSED  ] 2 test(s).
[  FAILED  ] 2 test(s), listed below:'
program built/tests/test_dead 139 ''
program tests/good.sh 0 'SKIP 40: no GPU (none is here)
5 passed, 0 failed, 40 skipped'
program tests/silent.sh 0 'nothing'
program tests/bad.sh 1 'FAIL it
6 passed, 1 failed, 0 skipped'

said() { # CODE LAST_LINE TEST...: what it ends with
    local code=$1 last=$2
    shift 2
    tests/run.sh built "$@" >out 2>&1
    [ $? -eq "$code" ] && [ "$(tail -n 1 out)" = "$last" ] && return
    cat out
    return 1
}
check "all passed" said 0 'all passed: 8; not run: 40 (40 need a GPU, 0: see SKIP)' test_good.c good.sh
check "nothing left out" said 0 'all passed: 3' test_good.c
check "some left out" said 0 'all passed: 9; not run: 42 (41 need a GPU, 1: see SKIP)' test_good.c test_half.c good.sh
check "one line for each" diff <(sed 's/ [0-9 ]*:[0-9][0-9] / T /; s/, [0-9]* s$/, N s/' out) - <<END
  1/3 T  test_good.c: 3 passed, N s
  2/3 T  test_half.c: 1 passed, N s
SKIP 1: there is no moon
  3/3 T  good.sh: 5 passed, N s
all passed: 9; not run: 42 (41 need a GPU, 1: see SKIP)
END
check "some failed" said 1 'FAILED: 3 of 11, in test_bad.c bad.sh' test_bad.c bad.sh
check "a crash, and a script that does not say what passed" said 1 'FAILED: 2 of 5, in test_dead.c silent.sh' test_good.c test_dead.c silent.sh
check "nothing passed" said 1 'FAILED: 1 of 1, in silent.sh' silent.sh
check_sum
