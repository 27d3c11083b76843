#!/usr/bin/env bash
# The library as others meet it: tests/docs/library.sh BUILD [list]. What is exported, what it stands on, what is installed,
# and docs/library.md: its programs are compiled against what was installed, and print what it shows. `list` tells which
# commands of that page are run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}
block() { # LANGUAGE: the text of its blocks
    awk -v mark="\`\`\`$1" '$0 == mark { on = 1; next } /^```/ { on = 0 } on' docs/library.md
}
if [ "${2:-}" = list ]; then
    block console | sed -n 's/^\$ //p'
    exit
fi
instruments=$(grep -oE -- '-fsanitize=[a-z,]+|--coverage' "$build/config" | sort -u | tr '\n' ' ')
cuda=$(grep -q -- -DGF_WITH_CUDA "$build/config" && echo 1 || echo 0)

# ---- symbols -----------------------------------------------------------------------------------------

# Every symbol that is exported is declared in the header, and the other way round.
exported() { nm -D --defined-only "$build/libgpufilter.so" | awk '{print $NF}' | LC_ALL=C sort; }
declared() { sed -nE 's/^GF_API [^(]*\b(gf_[a-z0-9_]+)\(.*/\1/p' src/gpufilter.h src/gpufilter_tools.h | LC_ALL=C sort; }
declares_all() { [ "$(declared | wc -l)" -eq "$(cat src/gpufilter.h src/gpufilter_tools.h | grep -c '^GF_API')" ]; }
check "every declaration of the header is found" declares_all
check "exported symbols are those of the header" diff <(declared) <(exported)

# What a static link meets: names of ours alone. (What nvcc compiles has C++ names, which no C program has; sanitizers
# add some of their own.)
only_ours() {
    nm -g --defined-only "$build/libgpufilter.a" >"$work/names" && grep ' T gf_version$' "$work/names" &&
        ! awk 'NF == 3 && $3 !~ /^(gf_|_Z|__odr_asan[.]gf_)/' "$work/names" | grep .
}
check "names in the archive begin with gf_" only_ours

# ---- the shared object -------------------------------------------------------------------------------

dynamic() { readelf -dW "$build/libgpufilter.so"; }
soname=libgpufilter.so.$(sed -nE 's/^#define GF_VERSION_MAJOR ([0-9]+)$/\1/p' src/gpufilter.h)
check "the soname" grep -F "soname: [$soname]" <(dynamic)
check "it is bound when it is loaded" grep -E 'FLAGS_1.* NOW' <(dynamic)
no() { ! grep -E "$1" <(dynamic); } # PATTERN
check "its code is the same at every address" no TEXTREL
check "it looks for what it needs where the system does" no 'RPATH|RUNPATH'
check "its stack is not executable" grep -E 'GNU_STACK.* RW ' <(readelf -lW "$build/libgpufilter.so")
nothing_undefined() { ldd -r "$build/libgpufilter.so" >"$work/ldd" 2>&1 && ! grep -E 'undefined|not found' "$work/ldd"; }
needs_no_others() { # beside the C library, which was several before glibc 2.34
    local known='libpng16|libz|libisal|libm|libc|ld-linux.*|libpthread'
    [ "$cuda" -eq 0 ] || known="$known|libdl|librt|libgcc_s"
    ! dynamic | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE "^($known)\.so\.[0-9]+$"
}
case $instruments in
*sanitize*) skip 2 "what it needs: a sanitizer's library must come first" ;;
*)
    check "it has all that it uses" nothing_undefined
    check "it needs libpng, zlib, ISA-L and the C library alone" needs_no_others
    ;;
esac

# The program on the shared library gives what the program on the static one does.
same_from_shared() {
    "$build/gpufilter" smooth --backend cpu samples/cutout.png "$work/a.pam" &&
        "$build/gpufilter-shared" smooth --backend cpu samples/cutout.png "$work/b.pam" &&
        cmp "$work/a.pam" "$work/b.pam"
}
check "the program on the shared library" same_from_shared

# ---- what is installed ---------------------------------------------------------------------------------

sanitizers=$(grep -oE 'sanitize=[a-z,]+' <<<"$instruments" | cut -d = -f 2)
make_install() {
    make --no-print-directory BUILD="$build" CUDA="$cuda" SAN="$sanitizers" PREFIX=/usr DESTDIR="$work/root" "$1"
}
check "make install" make_install install
root=$work/root/usr # what is there, and how it goes again: tests/system/install.sh

# ---- docs/library.md -------------------------------------------------------------------------------------

check "docs/library.md shows docs/library.c" diff <(block c) docs/library.c

# The commands of the page as they stand, and what they print; what they say on standard error is for people.
transcript() {
    local line
    while IFS= read -r line; do
        case $line in
        '$ '*)
            echo "$line"
            (cd "$work/here" && PATH=$work/bin:$PATH LD_LIBRARY_PATH=$libraries bash -c "${line#\$ }" 2>>"$work/said" </dev/null)
            ;;
        esac
    done <"$1"
}
as_shown() { # WHAT: the transcripts that tell about it
    block console | awk -v what="$1" '
        /^\$ / { on = what == "python" ? /python3/ : what == "c++" ? /c\+\+|\/dot/ : !/python3|c\+\+|\/dot/ } on' >"$work/shown"
    : >"$work/said"
    [ -s "$work/shown" ] && transcript "$work/shown" >"$work/printed"
    diff "$work/shown" "$work/printed" || { cat "$work/said"; return 1; }
}
mkdir "$work/here" "$work/bin"
cp docs/library.c docs/library.py "$work/here" && ln -s "$PWD/samples" "$work/here/samples"
block cpp >"$work/here/dot.cpp"
stand_in() { # NAME COMMAND...: what a name means in those commands
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
    check "it is linked with $soname" needs library
    check "linked statically it needs no $soname" needs_none library-static
    if command -v c++ >/dev/null 2>&1; then
        check "the program in C++ prints what the page shows" as_shown c++
    else
        skip 1 "C++: there is no c++"
    fi
else
    skip 4 "programs against the library: there is no pkg-config"
fi
python=
for name in python3 /usr/bin/python3; do # a python3 of one's own often has no numpy
    [ -n "$python" ] || ! "$name" -c 'import numpy' 2>/dev/null || python=$(command -v "$name")
done
case $python,$instruments in
,*) skip 1 "Python: python3-numpy is not here" ;;
*sanitize*) skip 1 "Python: it is not made for a library with sanitizers" ;;
*)
    stand_in python3 "$python" -B
    check "docs/library.py prints what the page shows" as_shown python
    ;;
esac
if command -v c++ >/dev/null 2>&1; then
    check "the headers in C++" c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ src/gpufilter_tools.h
else
    skip 1 "the header in C++: there is no c++"
fi

# Programs that load it later (Python) have little room for variables that each thread has from its beginning.
no_static_tls() { readelf -d "$build/libgpufilter.so" >"$work/dynamic" && grep -q SONAME "$work/dynamic" && ! grep STATIC_TLS "$work/dynamic"; }
check "it can be loaded at any time" no_static_tls
check_sum
