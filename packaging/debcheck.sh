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

# Another folder, but where nvcc was at work: it names functions after the path of their source.
again=$work/again
if [ "$CUDA" = 1 ]; then
    again=$folder
    rm -rf "$folder.first"
    mv "$folder" "$folder.first"
    folder=$folder.first
fi
tar xzf "$tarball" -C "$work"
(
    umask 077
    PATH=$work/bin:$PATH TZ=Asia/Tokyo LC_ALL=C HOME=$work "$work/gpufilter-$version/packaging/deb.sh" "$version" "$tarball" "$again"
) >"$folder/again.log" 2>&1 || {
    tail -n 30 "$folder/again.log"
    exit 1
}
for package in "$folder"/*.deb "$folder"/*.ddeb; do
    [ -e "$package" ] || continue
    cmp "$package" "$again/${package##*/}"
    echo "${package##*/}: the same bytes again"
done
cd "$again"

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
[ "$CUDA" = 0 ] || suppressed=$suppressed,spelling-error-in-binary # NVIDIA's runtime has one
lintian --display-info --pedantic --fail-on error,warning,info,pedantic --suppress-tags "$suppressed" ./*.changes
echo "lintian: nothing"
