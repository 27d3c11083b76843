#!/usr/bin/env bash
# Check the Debian packages in DIRECTORY: debcheck.sh VERSION TARBALL DIRECTORY. Build the tarball again in another directory and
# environment, without git, and compare the packages byte for byte. Then run lintian if it is installed.
set -euo pipefail
version=$1
tarball=$(realpath "$2") directory=$(realpath "$3")
unset MAKEFLAGS MFLAGS MAKELEVEL SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && printf '#!/bin/sh\nexit 127\n' >"$work/bin/git" && chmod 755 "$work/bin/git"

# With CUDA, build in the same directory: nvcc derives names of functions from the path of their source.
again=$work/again
if [ "$CUDA" = 1 ]; then
    again=$directory
    rm -rf "$directory.first"
    mv "$directory" "$directory.first"
    directory=$directory.first
fi
tar xzf "$tarball" -C "$work"
(
    umask 077
    PATH=$work/bin:$PATH TZ=Asia/Tokyo LC_ALL=C HOME=$work "$work/gpufilter-$version/packaging/deb.sh" "$version" "$tarball" "$again"
) >"$directory/again.log" 2>&1 || {
    tail -n 30 "$directory/again.log"
    exit 1
}
for package in "$directory"/*.deb "$directory"/*.ddeb; do
    [ -e "$package" ] || continue
    cmp "$package" "$again/${package##*/}"
    echo "${package##*/}: reproduced byte for byte"
done
cd "$again"

if ! command -v lintian >/dev/null 2>&1; then
    echo "lintian is not installed: skipped"
    exit 0
fi
# No request for packaging exists in Debian's bug tracker. Versioned symbols would promise a stable interface before 1.0;
# the shlibs file covers all symbols.
suppressed=initial-upload-closes-no-bugs,no-symbols-control-file
case $MAINTAINER in # the default has no valid mail address
*@localhost*) suppressed=$suppressed,bogus-mail-host,bogus-mail-host-in-debian-changelog ;;
esac
[ "$CUDA" = 0 ] || suppressed=$suppressed,spelling-error-in-binary # NVIDIA's runtime contains one
lintian --display-info --pedantic --fail-on error,warning,info,pedantic --suppress-tags "$suppressed" ./*.changes
echo "lintian: no tags"
