#!/usr/bin/env bash
# Add a filter as CONTRIBUTING.md describes: tests/docs/add_filter.sh BUILD. A copy of the project gets the example
# filter: two directories and one line. Program, pages and tests must then include it. `tests/docs/add_filter.sh
# BUILD list` prints the commands of the page.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
commands() { sed -n '/^## A filter in 15 minutes/,/^\*\*Before/s/^       //p' CONTRIBUTING.md; }
if [ "${2:-}" = list ]; then
    commands
    exit
fi
. tests/support/check.sh
build=${1:-build}
root=$PWD
if [ "$build" != build ]; then
    skip 9 "the example filter: only for the build directory build/"
    check_summary
    exit
fi
copy=$work/project
mkdir "$copy"
# Copy modification times and build products, so that make compiles only new code.
tar -cf - --exclude=./.git --exclude=./.deps --exclude=./build/san-* --exclude=./build/fuzz --exclude=./build/coverage \
    --exclude=./build/tests/log --exclude=./build/dev-* --exclude=./build/deb . | tar -C "$copy" -xpf -
cd "$copy" || exit
touch "$work/then"

add() { # run the commands before `make`
    commands | sed '/^make/,$d' >"$work/add" && [ "$(wc -l <"$work/add")" -ge 4 ] && bash -e "$work/add"
}
check "the commands add the filter" add
only_additions() { # existing files differ by one line
    diff -rq -x build -x .git -x .deps -x gpufilter "$root" . >"$work/differ"
    [ "$(sed 's/^Only in \.\//Only in /' "$work/differ" | sort)" = "Files $root/filters/registry.def and ./filters/registry.def differ
Only in cuda: mine
Only in filters: mine" ] && [ "$(diff "$root/filters/registry.def" filters/registry.def)" = "$(wc -l <"$root/filters/registry.def")a$(wc -l <filters/registry.def)
> GF_FILTER(mine)" ]
}
check "only its directories and one line are new" only_additions
# Build with the same configuration; otherwise make rebuilds everything.
as_before=(CC="$(awk '{print $1; exit}' build/config)" CUDA="$(grep -q -- -DGF_WITH_CUDA build/config && echo 1 || echo 0)"
    SMS="$(grep -o 'code=sm_[0-9]*' build/config | sed 's/.*_//' | tr '\n' ' ')")
check "the project builds with the filter" make -j2 "${as_before[@]}" all build/tests/test_equality build/tests/list_cases
few() { [ "$(find build/obj -name '*.o' -newer "$work/then" | wc -l)" -le 12 ]; }
check "at most 12 objects are rebuilt" few
export PATH=$copy/build:$PATH
known() { # each writes to a file: in a pipe, the writer would fail when the reader ends after its match
    gpufilter >screen && grep -q '^  mine ' screen && gpufilter help mine >help && grep -q -- '-l, --level L' help &&
        ! gpufilter mine --level 2 samples/page.png out.png 2>errors && grep -q "level '2': must be a number from 0 to 1" errors &&
        build/tests/list_cases >cases && grep -q '^mine	.*level=0.25' cases &&
        grep -q -- --level build/completions/gpufilter.bash && grep -q level build/man/gpufilter-mine.1
}
check "help, manual page, completion and option checks include it" known
works() {
    gpufilter mine samples/page.png page.pgm -q && gpufilter hist page.pgm --csv | awk -F, '$NF {print $1, $NF}' >counts &&
        [ "$(cut -d' ' -f1 counts | tr '\n' ' ')" = "bin 0 255 " ]
}
check "the filter produces the expected image" works
check "the equality tests find no difference" env GF_TEST_ROUNDS=2 build/tests/test_equality
wrong() { # a row that depends on its strip must be detected
    sed -i 's/gf_row(&strip->in\[0\], y)/gf_row(\&strip->in[0], strip->in[0].y0)/' filters/mine/mine.c &&
        make -j2 "${as_before[@]}" build/gpufilter build/tests/test_equality &&
        ! GF_TEST_ROUNDS=2 build/tests/test_equality && { [ "$(by_tier no no yes)" = no ] || ! gpufilter verify --samples 1; }
}
[ "$(by_tier no no yes)" = no ] || check "verify finds no difference" gpufilter verify --samples 1M
check "a bug in the filter is detected" wrong
check_summary
