#!/usr/bin/env bash
# The release tarball: tests/system/dist.sh BUILD. Its contents, its reproducibility, and a tarball made from its own
# contents. `make distcheck` also builds it.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
unset SOURCE_DATE_EPOCH MAKEFLAGS MFLAGS MAKELEVEL
version=$(awk '/define GF_VERSION_(MAJOR|MINOR|PATCH)/ {v = v sep $3; sep = "."} END {print v}' src/gpufilter.h)
name=gpufilter-$version

dist() { # DIRECTORY INTO: run make dist in DIRECTORY, with INTO as its build directory
    make --no-print-directory -C "$1" CUDA=0 BUILD="$2" dist
}
check "make dist" dist . "$work/a"
tarball=$work/a/$name.tar.gz
contents() { tar tzf "$tarball" | sed "s,^$name/,," | sort; }

if [ -n "$(git ls-files Makefile 2>/dev/null)" ]; then
    check "exactly the tracked files" diff <(git ls-files | sort) <(contents)
    check "no build products" diff <(git ls-files -ci --exclude-standard) /dev/null
else
    skip 2 "tracked files: no git or no repository"
fi
one_directory() { ! tar tzf "$tarball" | grep -v "^$name/"; }
check "all files in one directory" one_directory
plain() { # only regular files, owned by root, readable by all, with one date
    [ "$(tar tzvf "$tarball" --full-time | awk '{print $2, $4, $5}' | sort -u)" = "0/0 $(date -d "@$(packaging/source.sh date)" '+%F %T')" ] &&
        ! tar tzvf "$tarball" | grep -vE '^-rw(-r--r--|xr-xr-x) '
}
check "modes, owner and date are fixed" plain

# Under another umask, locale and time zone, and from copies that only their owner may read.
check "the tarball unpacks" eval '(umask 077 && tar xzf "$tarball" --no-same-permissions -C "$work")'
copy=$work/$name
no_binaries() { ! grep -rlP '^(\x7fELF|!<arch>)' "$copy"; }
check "no binaries" no_binaries
again() { (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 dist . "$work/b") && cmp "$tarball" "$work/b/$name.tar.gz"; }
check "a second tarball is identical" again

# From the unpacked tarball, without git and with build products present.
mkdir "$work/bin" && printf '#!/bin/sh\nexit 127\n' >"$work/bin/git" && chmod 755 "$work/bin/git"
without_git() { PATH=$work/bin:$PATH "$@"; }
built_there() { mkdir -p "$copy/build/obj" && touch "$copy/build/obj/x.o" "$copy/src/x.gcov" && ln -s build/gpufilter "$copy/gpufilter"; }
check "add build products" built_there
itself() { without_git dist "$copy" build && cmp "$tarball" "$copy/build/$name.tar.gz"; }
check "a tarball of the unpacked files is identical" itself
# shellcheck disable=SC2016
check "all make targets work without git" eval 'cd "$copy" && without_git make -n CUDA=0 BUILD=build all tests install uninstall dist lint >/dev/null'

# A tracked file that is missing is detected, and no tarball is left.
missing() { # a fake of git lists a missing file
    printf '#!/bin/sh\n[ "$1" != ls-files ] || printf "Makefile\\0lost\\0"\n' >"$work/bin/git"
    ! without_git packaging/dist.sh "$version" "$work/missing/$name.tar.gz" && [ -z "$(ls -A "$work/missing")" ]
}
check "a missing file is detected" missing

# The header defines the version; the first section of the change log must be for it.
newest() { [ "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ]; }
check "the change log starts with this version" newest

check_summary
