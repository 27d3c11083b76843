#!/usr/bin/env bash
# The library as its users see it: tests/docs/library.sh BUILD [list]. Exported symbols, dependencies, installed
# files, and docs/library.md: its programs are compiled against the installed library and must print what the page
# shows. `list` prints the commands of that page that are run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}
block() { # LANGUAGE: print the text of its blocks
    awk -v mark="\`\`\`$1" '$0 == mark { on = 1; next } /^```/ { on = 0 } on' docs/library.md
}
if [ "${2:-}" = list ]; then
    block console | sed -n 's/^\$ //p'
    exit
fi
instruments=$(grep -oE -- '-fsanitize=[a-z,]+|--coverage' "$build/config" | sort -u | tr '\n' ' ')
cuda=$(grep -q -- -DGF_WITH_CUDA "$build/config" && echo 1 || echo 0)

# ---- symbols -----------------------------------------------------------------------------------------

# Every exported symbol must be declared in the headers, and every declared symbol must be exported.
exported() { nm -D --defined-only "$build/libgpufilter.so" | awk '{print $NF}' | LC_ALL=C sort; }
declared() { sed -nE 's/^GF_API [^(]*\b(gf_[a-z0-9_]+)\(.*/\1/p' src/gpufilter.h src/gpufilter_tools.h | LC_ALL=C sort; }
declares_all() { [ "$(declared | wc -l)" -eq "$(cat src/gpufilter.h src/gpufilter_tools.h | grep -c '^GF_API')" ]; }
check "every declaration in the headers is found" declares_all
check "the exported symbols equal those in the headers" diff <(declared) <(exported)

# Names for a static link: all begin with gf_, except C++ names of code compiled by nvcc, which C programs cannot use,
# and names that sanitizers add.
only_ours() {
    nm -g --defined-only "$build/libgpufilter.a" >"$work/names" && grep ' T gf_version$' "$work/names" &&
        ! awk 'NF == 3 && $3 !~ /^(gf_|_Z|__odr_asan[.]gf_)/' "$work/names" | grep .
}
check "names in the archive begin with gf_" only_ours

# ---- the shared library ------------------------------------------------------------------------------

dynamic() { readelf -dW "$build/libgpufilter.so"; }
soname=libgpufilter.so.$(sed -nE 's/^#define GF_VERSION_MAJOR ([0-9]+)$/\1/p' src/gpufilter.h)
check "the soname is $soname" grep -F "soname: [$soname]" <(dynamic)
no() { ! grep -E "$1" <(dynamic); } # PATTERN
check "no text relocations" no TEXTREL
check "no RPATH or RUNPATH" no 'RPATH|RUNPATH'
check "the stack is not executable" grep -E 'GNU_STACK.* RW ' <(readelf -lW "$build/libgpufilter.so")
nothing_undefined() { ldd -r "$build/libgpufilter.so" >"$work/ldd" 2>&1 && ! grep -E 'undefined|not found' "$work/ldd"; }
needs_no_others() { # other than the C library, which was several libraries before glibc 2.34
    local known='libpng16|libjpeg|libz|libdeflate|libm|libc|ld-linux.*|libpthread'
    [ "$cuda" -eq 0 ] || known="$known|libdl|librt|libgcc_s"
    ! dynamic | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE "^($known)\.so\.[0-9]+$"
}
case $instruments in
*sanitize*) skip 2 "dependencies: a sanitizer's library must be loaded first" ;;
*)
    check "no undefined symbols" nothing_undefined
    check "it depends on libpng, libjpeg, zlib, libdeflate and the C library only" needs_no_others
    ;;
esac

# The program linked with the shared library must produce the same output as the statically linked one.
same_from_shared() {
    "$build/gpufilter" smooth --backend cpu samples/cutout.png "$work/a.pam" &&
        "$build/shared/gpufilter" smooth --backend cpu samples/cutout.png "$work/b.pam" &&
        cmp "$work/a.pam" "$work/b.pam"
}
check "the program linked with the shared library" same_from_shared

# ---- the installed library -----------------------------------------------------------------------------

sanitizers=$(grep -oE 'sanitize=[a-z,]+' <<<"$instruments" | cut -d = -f 2)
make_install() {
    make --no-print-directory BUILD="$build" CUDA="$cuda" SAN="$sanitizers" PREFIX=/usr DESTDIR="$work/root" "$1"
}
check "make install" make_install install
root=$work/root/usr # tests/system/install.sh checks the installed files and their removal

# ---- docs/library.md -------------------------------------------------------------------------------------

check "docs/library.md shows docs/library.c" diff <(block c) docs/library.c
header=$(find -H "${CUDA_HOME:-/usr/local/cuda}"/include /usr/include -maxdepth 1 -name cuda_runtime_api.h 2>/dev/null | head -n 1)
if [ -n "$header" ]; then
    check "the example of device memory compiles" cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Isrc \
        -isystem "$(dirname "$header")" -x c <(block 'c device')
else
    skip 1 "the example of device memory: no CUDA headers"
fi

# Run the commands of the page and print their standard output; standard error is not part of the transcript.
transcript() {
    local line
    while IFS= read -r line; do
        case $line in
        '$ '*)
            echo "$line"
            (cd "$work/here" && PATH=$work/bin:$PATH LD_LIBRARY_PATH=$libraries bash -c "${line#\$ }" 2>>"$work/errors" </dev/null)
            ;;
        esac
    done <"$1"
}
as_shown() { # PART: run the transcripts of that part
    block console | awk -v what="$1" '
        /^\$ / { on = what == "c++" ? /c\+\+|\/dot/ : !/c\+\+|\/dot/ } on' >"$work/shown"
    : >"$work/errors"
    [ -s "$work/shown" ] && transcript "$work/shown" >"$work/printed"
    diff "$work/shown" "$work/printed" || { cat "$work/errors"; return 1; }
}
mkdir "$work/here" "$work/bin"
cp docs/library.c "$work/here" && ln -s "$PWD/samples" "$work/here/samples"
block cpp >"$work/here/dot.cpp"
stand_in() { # NAME COMMAND...: make a command NAME that runs COMMAND
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$work/bin/$1" && chmod +x "$work/bin/$1"
}
for compiler in cc c++; do
    stand_in $compiler "$(command -v $compiler)" -Wall -Wextra -Wpedantic -Werror "$instruments"
done
export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
libraries=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
if command -v pkg-config >/dev/null 2>&1; then
    needs() { readelf -d "$work/here/$1" | grep -F "[$soname]"; } # PROGRAM: the shared library
    needs_none() { ! needs "$1"; }
    check "the program of docs/library.md prints what the page shows" as_shown c
    check "the program is linked with $soname" needs library
    check "the static program does not need $soname" needs_none library-static
    if [[ $instruments == *sanitize* && $(c++ --version 2>/dev/null) == *clang* ]]; then
        skip 1 "C++: clang has other sanitizer libraries than gcc"
    elif command -v c++ >/dev/null 2>&1; then
        check "the program in C++ prints what the page shows" as_shown c++
    else
        skip 1 "C++: no c++"
    fi
else
    skip 4 "programs against the library: no pkg-config"
fi
if command -v c++ >/dev/null 2>&1; then
    check "the headers in C++" c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ src/gpufilter_tools.h
else
    skip 1 "the headers in C++: no c++"
fi

# Programs that load the library at run time (Python) have little space for static thread-local variables.
no_static_tls() { readelf -d "$build/libgpufilter.so" >"$work/dynamic" && grep -q SONAME "$work/dynamic" && ! grep STATIC_TLS "$work/dynamic"; }
check "no static thread-local storage" no_static_tls
check_summary
