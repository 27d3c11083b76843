#!/usr/bin/env bash
# Test Debian packages on a fresh system: try-deb.sh [--suite bookworm|noble] ROOT DEB...
#
# ROOT is a directory with a fresh system; debootstrap creates it if it is missing. Installs the dependencies, then, without a
# network, the packages, runs the program, removes the packages and checks that no file remains. Requires root; mounts
# /proc and /dev while it runs. ROOT is modified: the dependencies stay installed.
set -euo pipefail
suite=bookworm
if [ "${1:-}" = --suite ]; then
    suite=$2
    shift 2
fi
[ $# -ge 2 ] || { sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,6p; exit 2; }
root=$1
shift
here=$(cd "$(dirname "$0")/.." && pwd)

if [ ! -e "$root/usr/bin/apt-get" ]; then
    case $suite in
    noble) debootstrap --variant=minbase --components=main,universe noble "$root" http://archive.ubuntu.com/ubuntu ;;
    *) debootstrap --variant=minbase "$suite" "$root" http://deb.debian.org/debian ;;
    esac
fi
root=$(realpath "$root")
mount --bind /proc "$root/proc"
mount --bind /dev "$root/dev"
trap 'umount "$root/proc" "$root/dev"; rm -rf "$root/try"' EXIT
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
title() { printf '\n== %s\n' "$*"; }

rm -rf "$root/try"
mkdir "$root/try"
cp -- "$@" "$root/try"
cp "$here/samples/scene.png" "$here/golden/scene-keep-xy.png" "$root/try"

title "installing dependencies and man"
in_root apt-get update -qq
packages=$(for deb in "$root"/try/*.deb; do dpkg-deb -f "$deb" Package; done)
needed() { in_root sh -c 'apt-get install -s --no-install-recommends /try/*.deb' | sed -n 's/^Inst \([^ ]*\).*/\1/p' | grep -vxF -e "$packages" || :; }
# shellcheck disable=SC2046
in_root apt-get install -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends man-db $(needed) >/dev/null
in_root apt-get install -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends --download-only libcairo2 libtiff6 >/dev/null

# List all files except caches, logs, and the databases of dpkg, apt and ldconfig.
tree() {
    (cd "$root" && find . \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./try -o -path ./tmp -o -path ./run \
        -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./etc/ld.so.cache \) -prune \
        -o \( -type d -printf '%M %u %p\n' -o -printf '%M %u %s %p %l\n' \) | sort)
}
tree >"$root/try/before"

title "installing, running and removing the packages without a network"
cat >"$root/try/use" <<'USE'
set -eux
apt="apt-get -qq -y -o Dpkg::Use-Pty=0"
[ "$(wc -l </proc/net/dev)" -le 3 ] # two lines of headings, and lo
dpkg -i /try/*.deb
[ -z "$(dpkg --verify $PACKAGES)" ]
mkdir /try/here && cd /try/here
gpufilter --version
gpufilter devices
gpufilter smooth --keep-brightness --axis xy --verbose /try/scene.png out.png
gpufilter compare out.png /try/scene-keep-xy.png
gpufilter hist out.png --bins 8
gpufilter verify --samples 4M
code=0; gpufilter smooth --backend cuda /try/scene.png cuda.png || code=$?
[ $code -eq 3 ]
gpufilter smooth --keep-brightness /try/scene.png out.jpg
gpufilter info out.jpg
installed=
recommended() { # LIBRARY PACKAGE COMMAND...: the command fails without the library and works with it
    library=$1 package=$2
    shift 2
    if ! ldconfig -p | grep "$library" >/dev/null; then
        code=0; "$@" || code=$?
        [ $code -eq 1 ]
        $apt install --no-install-recommends --no-download $package >/dev/null
        installed="$installed $package"
    fi
    "$@"
}
recommended libcairo.so.2 libcairo2 gpufilter hist out.png --plot plot.png >plot.txt
gpufilter info plot.png
gpufilter smooth --stages enhance --gain 1 out.jpg out.tif # only reading TIFF needs libtiff, and writing LZW and Zstandard
recommended libtiff.so.6 libtiff6 gpufilter info out.tif
gpufilter compare out.tif out.jpg
man --warnings gpufilter >page 2>warnings
grep -A 4 '^SYNOPSIS' page
[ ! -s warnings ]
bash -n /usr/share/bash-completion/completions/gpufilter
[ -s /usr/share/zsh/vendor-completions/_gpufilter ]
[ -s /usr/share/fish/vendor_completions.d/gpufilter.fish ]
if [ -e /usr/share/doc/libgpufilter0 ]; then
    ldconfig -p | grep libgpufilter
fi
if [ -e /usr/include/gpufilter.h ] && command -v cc; then
    printf '#include <gpufilter.h>\n#include <stdio.h>\nint main(void) { return puts(gf_version()) < 0 || !gf_filter_find("smooth"); }\n' >mine.c
    cc mine.c -lgpufilter -o mine
    ldd ./mine
    ./mine
    if command -v pkg-config; then
        cc mine.c $(pkg-config --cflags --libs gpufilter) -o mine
        ./mine
    fi
fi
$apt purge $PACKAGES
[ ! -e /usr/bin/gpufilter ]
if ldconfig -p | grep libgpufilter || dpkg -l | grep gpufilter; then exit 1; fi
[ -z "$installed" ] || $apt purge --auto-remove $installed >/dev/null
USE
unshare -n chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive \
    PACKAGES="${packages//$'\n'/ }" bash /try/use

title "remaining files"
diff "$root/try/before" <(tree) && echo "none"
