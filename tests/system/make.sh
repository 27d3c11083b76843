#!/usr/bin/env bash
# Check the jobs of `make demo` and `make test`, and tests/run: tests/system/make.sh BUILD.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
unset MAKEFLAGS MFLAGS MAKELEVEL
build=${1:-build}
cores=$(getconf _NPROCESSORS_ONLN)

jobs_of() { make -n CUDA=0 T=png "$@" | sed -n 's/.*-directory \(.*all\)\( .*\)\?$/\1/p; s,^tests/run ,,p'; } # ARGUMENTS...: of make
check "demo uses all cores" diff <(jobs_of demo) <(echo "-j$cores all")
check "demo uses the jobs given by -j" diff <(jobs_of -j1 demo) <(echo ' all')
check "test uses all cores" diff <(jobs_of test) <(printf '%s\n' "-j$cores all" ' build png')
check "test uses the jobs given by -j" diff <(jobs_of -j3 test) <(printf '%s\n' ' all' '-j 3 build png')

# A build without sanitizers is hardened; flags of the caller neither conflict nor are repeated.
hardened() { # FILE WORD...: words of its headers and symbols
    local file=$1 word
    readelf -lWd "$file" >"$work/headers" && nm -D "$file" >>"$work/headers" || return 1
    for word in GNU_RELRO BIND_NOW __stack_chk_fail __snprintf_chk "${@:2}"; do
        grep -q "$word" "$work/headers" || { echo "no $word"; return 1; }
    done
}
fortified() { make -n "$@" CUDA=0 BUILD="$work/flags" all | grep -c -e '-D_FORTIFY_SOURCE=.*-c src/core/image.c'; }
if grep -q -e '-fsanitize\|-O0' "$build/config"; then
    skip 2 "the program is not hardened: it has sanitizers, or no optimisation"
else
    check "the program is hardened" hardened "$build/gpufilter" 'NOW PIE'
    check "the library is hardened" hardened "$build/libgpufilter.so"
fi
check "a value of the caller takes precedence" test "$(fortified)$(fortified CPPFLAGS=-D_FORTIFY_SOURCE=3)" = 11
check "no fortified functions without optimisation" test "$(fortified OPT=-O0)" = 0
precedence() { ! make -n CUDA=0 BUILD="$work/flags" CPPFLAGS=-D_FORTIFY_SOURCE=3 all | grep -q 'D_FORTIFY_SOURCE=2'; }
check "one value of _FORTIFY_SOURCE" precedence

# A compiler without two of the headers: plain make names their packages.
mkdir "$work/bin"
printf '#!/bin/sh\n! grep -q "libdeflate\\|stb"\n' >"$work/bin/lacking" && chmod +x "$work/bin/lacking"
names_packages() {
    ! make CUDA=0 BUILD="$work/lacking" CC="$work/bin/lacking" >"$work/lacks" 2>&1 &&
        grep -q 'needs these Debian packages: libdeflate-dev libstb-dev; install them, or run make demo' "$work/lacks"
}
check "make names the missing packages" names_packages

# tests/run on tests made here.
mkdir -p "$work/tree/tests/unit/io" "$work/tree/tests/system" "$work/tree/built/tests"
cp tests/run "$work/tree/tests"
cd "$work/tree" || exit
program() { # FILE CODE TEXT: prints TEXT and exits with CODE
    printf '#!/bin/sh\nprintf "%%s\\n" "%s"\nexit %d\n' "$3" "$2" >"$1" && chmod +x "$1"
    [ "${1#built}" = "$1" ] || touch "tests/unit/io/${1##*/}.c"
}
program built/tests/test_good 0 '[  PASSED  ] 1 test(s).
[  PASSED  ] 2 test(s).'
program built/tests/test_half 0 'SKIP 1: no GPU
SKIP 1: there is no moon
[  PASSED  ] 1 test(s).
[  SKIPPED ] 2 test(s), listed below:'
program built/tests/test_bad 1 '[  PASSED  ] 2 test(s).
[  FAILED  ] 2 test(s), listed below:'
program built/tests/test_dead 139 ''
program tests/system/fine.sh 0 'SKIP 40: no GPU (none is here)
5 passed, 0 failed, 40 skipped'
program tests/system/silent.sh 0 'nothing'
program tests/system/worse.sh 1 'FAIL it
6 passed, 1 failed, 0 skipped'
printf '%s\n' '# a comment' 'worse.sh test 1' 'test_dead long 2' 'fine.sh check 3 alone' >tests/tiers.txt

ends_with() { # CODE LAST_LINE ARGUMENT...: the exit code and the last line of a run
    local code=$1 last=$2
    shift 2
    tests/run "$@" >out 2>&1
    [ $? -eq "$code" ] && [ "$(tail -n 1 out)" = "$last" ] && return
    cat out
    return 1
}
check "all passed" ends_with 0 'all passed: 8; not run: 40 (40 need a GPU, 0: see SKIP)' built good fine
check "nothing skipped" ends_with 0 'all passed: 3' built test_good
check "some skipped" ends_with 0 'all passed: 9; not run: 42 (41 need a GPU, 1: see SKIP)' -j 1 built good half fine
check "one line for each, and why others did not run" diff <(sed -n 's/, [0-9.]* s$//; / left  \|:SKIP/p' out | sort) - <<END
  0 left  fine.sh: 5 passed
  1 left  test_half: 1 passed
  2 left  test_good: 3 passed
test_half:SKIP 1: there is no moon
END
check "some failed" ends_with 1 'FAILED: 3 of 11, in worse.sh test_bad' -j 1 built bad worse
shown() { grep -q '^FAIL it$' out && grep -q '^---- worse.sh: 6 passed, 1 FAILED (exit 1), see built/tests/log/worse.sh$' out; }
check "a failure is shown, and where its output is" shown
check "a crash, and a script without a summary" ends_with 1 'FAILED: 2 of 5, in test_dead silent.sh' -j 1 built good dead silent
check "nothing passed" ends_with 1 'FAILED: 1 of 1, in silent.sh' built silent
check "nothing selected" ends_with 2 'no test matches: moon' built moon
selects() { # NAMES OPTION...: expect these tests to run
    tests/run "${@:2}" built >out
    [ "$(sed -n 's/^\(---- \| *[0-9]* left  \)\([a-z_.]*\):.*/\2/p' out | sort | xargs)" = "$1" ]
}
check "the tier check" selects 'fine.sh silent.sh test_bad test_good test_half' -t check
check "the tier test" selects 'fine.sh silent.sh test_bad test_good test_half worse.sh'
check "the tier long" selects 'fine.sh silent.sh test_bad test_dead test_good test_half worse.sh' -t long
program tests/system/slow.sh 0 ''
cat >tests/system/slow.sh <<'END'
#!/bin/sh
echo $$ >pid
exec sleep 100
END
interrupted() {
    local code
    rm -f pid
    env --default-signal tests/run built slow >out 2>&1 &
    until [ -s pid ]; do sleep 0.05; done
    kill -INT $!
    wait $!
    code=$?
    sleep 0.2
    [ $code -eq 130 ] && ! kill -0 "$(cat pid)" 2>/dev/null
}
check "an interrupt ends the tests that run" interrupted
own_directory() { # each test has its own TMPDIR, which is removed
    printf '#!/bin/sh\ntouch "$TMPDIR/x" && echo "$TMPDIR" >directory && echo "1 passed, 0 failed, 0 skipped"\n' >tests/system/slow.sh
    tests/run built slow >out && grep -q '/slow.sh$' directory && [ ! -e "$(cat directory)" ]
}
check "a test has a directory for temporary files" own_directory
check_summary
