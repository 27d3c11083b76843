#!/usr/bin/env bash
# What Debian packages must be: debcheck.sh VERSION TARBALL FOLDER. The tarball is built once more, elsewhere, with no git
# and in other surroundings: the packages are those in FOLDER, to the byte. Then lintian, Debian's own judge, where it is.
set -euo pipefail
version=$1
tarball=$(realpath "$2") folder=$(realpath "$3")
unset MAKEFLAGS MFLAGS MAKELEVEL SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && printf '#!/bin/sh\nexit 127\n' >"$work/bin/git" && chmod 755 "$work/bin/git"

tar xzf "$tarball" -C "$work"
(
    cd "$work/gpufilter-$version"
    umask 077
    PATH=$work/bin:$PATH TZ=Asia/Tokyo LC_ALL=C HOME=$work make --no-print-directory BUILD=again deb
) >"$folder/again.log" 2>&1 || {
    tail -n 30 "$folder/again.log"
    exit 1
}
cd "$folder"
for package in *.deb *.ddeb; do
    [ -e "$package" ] || continue
    cmp "$package" "$work/gpufilter-$version/again/deb/$package"
    echo "$package: the same bytes again"
done

if ! command -v lintian >/dev/null 2>&1; then
    echo "lintian is not here"
    exit 0
fi
# Nobody has asked Debian for this package yet. Symbols with versions of their own would promise what is not stable
# before 1.0; the shlibs file says so for all of them.
suppressed=initial-upload-closes-no-bugs,no-symbols-control-file
case $MAINTAINER in # nobody's name
*@localhost*) suppressed=$suppressed,bogus-mail-host,bogus-mail-host-in-debian-changelog ;;
esac
lintian --display-info --pedantic --fail-on error,warning,info,pedantic --suppress-tags "$suppressed" ./*.changes
echo "lintian: nothing"
