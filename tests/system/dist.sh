#!/usr/bin/env bash
# The tarball of a release: tests/system/dist.sh BUILD. What is in it, that it is the same whoever makes it, and that it makes
# itself again; `make distcheck` builds it, too.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
unset SOURCE_DATE_EPOCH MAKEFLAGS MFLAGS MAKELEVEL
version=$(awk '/define GF_VERSION_(MAJOR|MINOR|PATCH)/ {v = v sep $3; sep = "."} END {print v}' src/gpufilter.h)
name=gpufilter-$version

dist() { # FOLDER INTO: made there by make
    make --no-print-directory -C "$1" CUDA=0 BUILD="$2" dist
}
check "make dist" dist . "$work/a"
tarball=$work/a/$name.tar.gz
contents() { tar tzf "$tarball" | sed "s,^$name/,," | sort; }

if [ -n "$(git ls-files Makefile 2>/dev/null)" ]; then
    check "all that git knows, and nothing else" diff <(git ls-files | sort) <(contents)
    check "nothing that is built" diff <(git ls-files -ci --exclude-standard) /dev/null
else
    skip 2 "what git knows: git is not here, or these files came without it"
fi
one_folder() { ! tar tzf "$tarball" | grep -v "^$name/"; }
check "one folder" one_folder
plain() { # nothing but files of root's that all may read, of one date
    [ "$(tar tzvf "$tarball" --full-time | awk '{print $2, $4, $5}' | sort -u)" = "0/0 $(date -d "@$(packaging/source.sh date)" '+%F %T')" ] &&
        ! tar tzvf "$tarball" | grep -vE '^-rw(-r--r--|xr-xr-x) '
}
check "modes, owner and date" plain

# Under another umask, locale and time zone; from copies that only their owner may read.
check "unpacked" eval '(umask 077 && tar xzf "$tarball" --no-same-permissions -C "$work")'
copy=$work/$name
binaries() { ! grep -rlP '^(\x7fELF|!<arch>)' "$copy"; }
check "no machine code" binaries
again() { (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 dist . "$work/b") && cmp "$tarball" "$work/b/$name.tar.gz"; }
check "the same bytes again" again

# From the tarball itself, with no git, and beside what was built there.
mkdir "$work/bin" && printf '#!/bin/sh\nexit 127\n' >"$work/bin/git" && chmod 755 "$work/bin/git"
without_git() { PATH=$work/bin:$PATH "$@"; }
built_there() { mkdir -p "$copy/build/obj" && touch "$copy/build/obj/x.o" "$copy/src/x.gcov" && ln -s build/gpufilter "$copy/gpufilter"; }
check "something built" built_there
itself() { without_git dist "$copy" build && cmp "$tarball" "$copy/build/$name.tar.gz"; }
check "it makes itself" itself
# shellcheck disable=SC2016
check "every rule is there" eval 'cd "$copy" && without_git make -n CUDA=0 BUILD=build all tests install uninstall dist lint >/dev/null'

# What was lost is noticed, and leaves no tarball behind.
lost() { # as git says it
    printf '#!/bin/sh\n[ "$1" != ls-files ] || printf "Makefile\\0lost\\0"\n' >"$work/bin/git"
    ! without_git packaging/dist.sh "$version" "$work/lost/$name.tar.gz" && [ -z "$(ls -A "$work/lost")" ]
}
check "a file that is lost" lost

# The version stands in the header; the change log tells of that one first.
newest() { [ "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ]; }
check "the change log is of this version" newest

check_sum
