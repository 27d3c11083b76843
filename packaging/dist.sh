#!/usr/bin/env bash
# The tarball of a release: dist.sh VERSION FILE. The same bytes whoever makes it, whenever, from the same files.
set -euo pipefail
name=gpufilter-$1 file=$2
here=${0%/*}
date=$("$here/source.sh" date)
"$here/source.sh" committed || echo "note: $file holds changes that are not committed" >&2
mkdir -p "$(dirname "$file")"
trap 'rm -f "$file.part"' EXIT
"$here/source.sh" files |
    LC_ALL=C tar --create --directory="$here/.." --no-recursion --null --format=ustar --mtime="@$date" --owner=root:0 --group=root:0 \
        --numeric-owner --mode=u=rwX,go=rX --transform="flags=r;s,^,$name/," --files-from=- |
    gzip -9n >"$file.part"
mv "$file.part" "$file"
