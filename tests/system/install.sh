#!/usr/bin/env bash
# `make install` and `make uninstall`: tests/system/install.sh BUILD. Every installed file with its mode, independent
# of the umask, and no other files; uninstall removes all of them. tests/docs/library.sh builds programs against the
# installed library.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(realpath -m "${1:-build}")
version=$("$build/gpufilter" --version | awk '{print $2; exit}')
soname=libgpufilter.so.${version%%.*}
sanitized=$(grep -o -- '-fsanitize=[a-z,]*' "$build/config" | head -n 1)

make_install() { # install|uninstall VARIABLE=VALUE...
    make --no-print-directory BUILD="$build" CUDA="$(grep -q -- -DGF_WITH_CUDA "$build/config" && echo 1 || echo 0)" \
        SAN="${sanitized#*=}" "$@"
}

# Manual pages and completions are installed only if they were built.
expected() { # LIB ZSH: print the expected files under /usr, in the format of find
    local page
    echo "-rwxr-xr-x bin/gpufilter"
    echo "-rw-r--r-- include/gpufilter.h"
    echo "-rw-r--r-- $1/libgpufilter.a"
    echo "-rwxr-xr-x $1/libgpufilter.so.$version"
    echo "lrwxrwxrwx $1/$soname -> libgpufilter.so.$version"
    echo "lrwxrwxrwx $1/libgpufilter.so -> $soname"
    echo "-rw-r--r-- $1/pkgconfig/gpufilter.pc"
    for page in "$build"/man/*.1; do
        [ ! -e "$page" ] || echo "-rw-r--r-- share/man/man1/${page##*/}"
    done
    page="$build/completions"
    [ ! -e "$page/gpufilter.bash" ] || echo "-rw-r--r-- share/bash-completion/completions/gpufilter"
    [ ! -e "$page/_gpufilter" ] || echo "-rw-r--r-- $2/_gpufilter"
    [ ! -e "$page/gpufilter.fish" ] || echo "-rw-r--r-- share/fish/vendor_completions.d/gpufilter.fish"
}
list_files() { # DIRECTORY: list all files, and the directories whose mode is not 755
    find "$1" -type l -printf '%M %P -> %l\n' -o ! -type d -printf '%M %P\n' -o ! -perm 755 -printf '%M %P/\n' | sort
}
same_as_expected() { diff <(expected "${2:-lib}" "${3:-share/zsh/site-functions}" | sort) <(list_files "$1"); }

touch "$work/before"
check "make install" make_install install PREFIX=/usr DESTDIR="$work/root"
root=$work/root/usr
check "the installed files" same_as_expected "$root"
check "the installed program prints its version" "$root/bin/gpufilter" --version
check "the installed program filters an image" "$root/bin/gpufilter" smooth samples/cutout.png "$work/out.png"

# A strict umask, a directory name with a space, other target directories, and an existing directory, which keeps its mode.
strict() {
    (umask 077 && make_install "$1" PREFIX=/usr DESTDIR="$work/r 2" LIBDIR=/usr/lib/multi ZSHDIR=/usr/share/zsh/other)
}
mkdir -p "$work/r 2/usr/include" && chmod 700 "$work/r 2/usr/include"
check "a strict umask" strict install
kept_mode() { [ "$(stat -c %a "$work/r 2/usr/include")" = 700 ] && chmod 755 "$work/r 2/usr/include"; }
check "an existing directory keeps its mode" kept_mode
check "files in other target directories" same_as_expected "$work/r 2/usr" lib/multi share/zsh/other
# shellcheck disable=SC2016
check "pkg-config file with another libdir" grep -qx 'libdir=${prefix}/lib/multi' "$work/r 2/usr/lib/multi/pkgconfig/gpufilter.pc"
check "uninstall from other target directories" strict uninstall
check "uninstall leaves nothing in other target directories" diff <(list_files "$work/r 2/usr") /dev/null

# Without DESTDIR, root runs ldconfig; other users may not.
mkdir "$work/bin"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho called >>"%s/called"\n' "$work" >"$work/bin/ldconfig" && chmod 755 "$work/bin/ldconfig"
runs_ldconfig() {
    PATH=$work/bin:$PATH make_install install PREFIX=/usr DESTDIR="$work/root" && [ ! -e "$work/called" ] &&
        PATH=$work/bin:$PATH make_install install PREFIX="$work/own" &&
        [ "$(cat "$work/called" 2>/dev/null)" = "$([ "$(id -u)" -ne 0 ] || echo called)" ]
}
check "root runs ldconfig without DESTDIR" runs_ldconfig
check "files installed without DESTDIR" same_as_expected "$work/own"

# Built by root, installed by another user into a directory of that user.
if [ "$(id -u)" -eq 0 ] && chmod 755 "$work" && other() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; } &&
    other test -r "$build/gpufilter" -a -r Makefile 2>/dev/null; then
    mkdir "$work/theirs" && chown 65534:65534 "$work/theirs"
    other_install() { HOME=$work/theirs other make --no-print-directory BUILD="$build" CUDA=0 "$1" PREFIX="$work/theirs/local"; }
    check "another user installs" other_install install
    check "files that another user installed" same_as_expected "$work/theirs/local"
    check "another user uninstalls" other_install uninstall
    check "uninstall by another user leaves nothing" diff <(list_files "$work/theirs/local") /dev/null
else
    skip 4 "another user installs: cannot switch to another user, or it cannot access $build"
fi
built_nothing() {
    [ -z "$(find "$build"/{config,gpufilter,libgpufilter.a,libgpufilter.so,obj,man,completions} -newer "$work/before" ! -name '*.gcda' 2>/dev/null)" ]
}
check "installing builds nothing" built_nothing

# ---- pkg-config and the manual page ---------------------------------------------------------------------------------------
if command -v pkg-config >/dev/null 2>&1; then
    flags() { PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root pkg-config "$@" gpufilter; }
    flags_equal() { # EXPECTED FLAGS...: pkg-config prints exactly these words
        [ "$(flags "${@:2}" | xargs)" = "$1" ]
    }
    check "pkg-config: version" flags_equal "$version" --modversion
    header_found() { [[ " $(flags --cflags) " == *" -I$root/include "* ]]; } # the flags of libpng follow
    check "pkg-config: include directory" header_found
    check "pkg-config: libs" flags_equal "-L$root/lib -lgpufilter" --libs
    static_libs() { # the further libraries that a static link needs
        local all flag
        all=" $(flags --static --libs) "
        for flag in -lpng16 -ljpeg -lz -ldeflate -lm $(grep -q -- -DGF_WITH_CUDA "$build/config" && echo -lcudart_static -lstdc++); do
            [[ $all == *" $flag "* ]] || return 1
        done
    }
    check "pkg-config: static libs" static_libs
else
    skip 4 "pkg-config: not installed"
fi

if [ ! -e "$root/share/man/man1/gpufilter.1" ]; then
    skip 1 "the installed manual page: none was built"
elif man --version 2>/dev/null | grep "^man " >/dev/null; then
    page() { MANPATH=$root/share/man MANWIDTH=100 man --warnings gpufilter >"$work/page" 2>"$work/warnings" &&
        [ ! -s "$work/warnings" ] && grep -q '^NAME' "$work/page" && grep -q 'gpufilter.* smooth' "$work/page"; }
    check "the installed manual page" page
else
    skip 1 "the installed manual page: no man program"
fi

check "make uninstall" make_install uninstall PREFIX=/usr DESTDIR="$work/root"
check "uninstall removes all files" diff <(list_files "$root") /dev/null

check_summary
