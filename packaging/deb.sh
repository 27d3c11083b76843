#!/usr/bin/env bash
# Build the Debian packages of a release: deb.sh VERSION TARBALL DIRECTORY. Unpack the tarball in DIRECTORY, copy packaging/debian
# to debian/, and run dpkg-buildpackage; it writes the packages to DIRECTORY. Reads CUDA, CUDA_HOME, SMS, MAINTAINER and
# DEB_REVISION from the environment.
set -euo pipefail
umask 022
version=$1 tarball=$2 directory=$3
export LC_ALL=C.UTF-8 TZ=UTC
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD PREFIX DESTDIR SAN MPI CAIRO V
SOURCE_DATE_EPOCH=$("${0%/*}/source.sh" date)
export SOURCE_DATE_EPOCH

rm -rf "$directory"
mkdir -p "$directory"
cp "$tarball" "$directory/gpufilter_$version.orig.tar.gz"
tar xzf "$tarball" -C "$directory"
cd "$directory/gpufilter-$version"
cp -r packaging/debian debian
control=$(<debian/control.in)
printf '%s\n' "${control//@MAINTAINER@/"$MAINTAINER"}" >debian/control
rm debian/control.in

# Write the package's change log with the versions and dates of CHANGELOG.md.
entry() { # VERSION DISTRIBUTION SECONDS
    printf 'gpufilter (%s-%s) %s; urgency=medium\n\n  * Version %s: see changelog.gz.\n\n -- %s  %s\n\n' \
        "$1" "$DEB_REVISION" "$2" "$1" "$MAINTAINER" "$(date -R -d "@$3")"
}
sed -n 's/^## \([0-9.]*\) (\(.*\))$/\1 \2/p' CHANGELOG.md | while read -r number released; do
    case $released in
    "not released"*) entry "$number" UNRELEASED "$SOURCE_DATE_EPOCH" ;;
    *) entry "$number" unstable "$(date -d "$released" +%s)" ;;
    esac
done | sed '$d' >debian/changelog # without the blank line after the last entry
[ "$(dpkg-parsechangelog -S Version)" = "$version-$DEB_REVISION" ] || {
    echo "CHANGELOG.md does not begin with version $version" >&2
    exit 1
}

dpkg-buildpackage -b -us -uc
cd ..
echo "built in $directory:"
ls -- *.deb
