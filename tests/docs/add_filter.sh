#!/usr/bin/env bash
# Adding a filter as CONTRIBUTING.md says it: tests/docs/add_filter.sh BUILD. A copy of the project gets the filter of the page: a
# folder, a .cu and one line, and everything else must then know it. `tests/docs/add_filter.sh BUILD list` prints the page's commands.
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
    skip 9 "the example filter: added where the build folder is build/"
    check_sum
    exit
fi
copy=$work/project
mkdir "$copy"
# With their times, and what was built of them: only what is new is compiled.
tar -cf - --exclude=./.git --exclude=./.deps --exclude=./build/san-* --exclude=./build/fuzz --exclude=./build/coverage \
    --exclude=./build/tests/log --exclude=./build/dev-* --exclude=./build/deb . | tar -C "$copy" -xpf -
cd "$copy" || exit
touch "$work/then"

add() { # all that comes before `make`
    commands | sed '/^make/,$d' >"$work/add" && [ "$(wc -l <"$work/add")" -ge 4 ] && bash -e "$work/add"
}
check "the filter is added" add
touched() { # what there was before differs by one line
    diff -rq -x build -x .git -x .deps -x gpufilter "$root" . >"$work/differ"
    [ "$(sed 's/^Only in \.\//Only in /' "$work/differ" | sort)" = "Files $root/filters/registry.def and ./filters/registry.def differ
Only in cuda: mine.cu
Only in filters: mine" ] && [ "$(diff "$root/filters/registry.def" filters/registry.def)" = "$(wc -l <"$root/filters/registry.def")a$(wc -l <filters/registry.def)
> GF_FILTER(mine)" ]
}
check "it touches its folder, its .cu and one line" touched
# As the rest was built, or all of it would be built anew.
as_before=(CC="$(awk '{print $1; exit}' build/config)" CUDA="$(grep -q -- -DGF_WITH_CUDA build/config && echo 1 || echo 0)"
    SMS="$(grep -o 'code=sm_[0-9]*' build/config | sed 's/.*_//' | tr '\n' ' ')")
check "it builds" make -j2 "${as_before[@]}" all build/tests/test_equality build/tests/list_cases
few() { [ "$(find build/obj -name '*.o' -newer "$work/then" | wc -l)" -le 12 ]; }
check "and little else has to be" few
export PATH=$copy/build:$PATH
known() { # each writes to a file: a pipe whose reader has found its line and gone would fail its writer
    gpufilter >screen && grep -q '^  mine ' screen && gpufilter help mine >help && grep -q -- '-l, --level L' help &&
        ! gpufilter mine --level 2 samples/page.png out.png 2>said && grep -q "level '2': must be a number from 0 to 1" said &&
        build/tests/list_cases >cases && grep -q '^mine	.*level=0.25' cases &&
        grep -q -- --level build/completions/gpufilter.bash && grep -q level build/man/gpufilter-mine.1
}
check "help, manual page, completion and option checks know it" known
works() {
    gpufilter mine samples/page.png page.pgm -q && gpufilter hist page.pgm --csv | awk -F, '$NF {print $1, $NF}' >counts &&
        [ "$(cut -d' ' -f1 counts | tr '\n' ' ')" = "bin 0 255 " ]
}
check "it works" works
check "the equality tests find no difference" env GF_TEST_ROUNDS=2 build/tests/test_equality
wrong() { # a row that depends on its strip is detected
    sed -i 's/gf_row(&strip->in, y)/gf_row(\&strip->in, strip->in.y0)/' filters/mine/mine.c &&
        make -j2 "${as_before[@]}" build/gpufilter build/tests/test_equality &&
        ! GF_TEST_ROUNDS=2 build/tests/test_equality && ! gpufilter verify --samples 1M
}
[ "$(by_tier no no yes)" = no ] || check "verify finds no difference" gpufilter verify --samples 1M
check "a mistake in it is found" wrong
check_sum
