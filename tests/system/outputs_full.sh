#!/usr/bin/env bash
# Outputs on full disks: tests/system/outputs_full.sh BUILD. /dev/full, and file systems that this test mounts. Each
# failure prints one line, returns the right exit code, keeps existing files and leaves no others.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/outputs_run.sh

mounts=()
# shellcheck disable=SC2317 # called by the trap
clean_up() {
    for mount in "${mounts[@]}"; do umount -l "$mount" 2>/dev/null; done
    rm -rf "$work"
}
trap clean_up EXIT

# ---- /dev/full ---------------------------------------------------------------------------------------------------------
fresh
# shellcheck disable=SC2046 # words
if [ -w /dev/full ]; then
    for kind in png ppm pam jpg tif bmp tga hdr raw pgm pfm; do
        check "$kind to a full device" one_line 1 "$full" gpufilter smooth $(input_of $kind) /dev/full --format $kind
    done
    for kind in csv npy json; do
        check "samples as $kind" one_line 1 "$full" gpufilter hist in.pgm -x 3 -q --out /dev/full --sample-format $kind
    done
    check "a mask" one_line 1 "$full" gpufilter hist in.pgm -x 3 -q --mask /dev/full --format png
    check "a map of differences" one_line 2 "$full" gpufilter compare in.png in.png --diff /dev/full --format png
    into_full() { "$@" >/dev/full; }
    for what in "smooth in.ppm - --format png" "hist in.pgm" "hist in.pgm --json" "hist in.pgm --csv" "info in.png" \
        "hist in.pgm -q -x 3 --out - --sample-format npy" "--version"; do
        check "stdout is full: $what" one_line 1 "$full" into_full gpufilter $what
    done
    # Outputs are named after the report is printed: if printing fails, none appears and existing files stay.
    check "stdout is full, no image appears" one_line 1 "$full" into_full gpufilter smooth in.ppm here/o.png --json
    check "stdout is full, no map appears" one_line 2 "$full" into_full gpufilter compare in.png in.png --diff here/d.png
    # A batch finishes its images one by one.
    batch_into_full() {
        fresh
        one_line 1 "$full; 1 output is complete" into_full gpufilter smooth in.ppm -O new --json -q && cmp new/in.ppm want.ppm
    }
    check "stdout is full, a batch reports the outputs in place" batch_into_full
    if has_cairo; then
        for kind in png svg; do
            check "a plot as $kind" one_line 1 "$full" gpufilter hist in.pgm --plot /dev/full --plot-format $kind -q
        done
        check "stdout is full: a plot" one_line 1 "$full" into_full gpufilter hist in.pgm --plot - --plot-format svg -q
        unprinted() { # OPTION...: samples, mask and plot of a command that cannot print its report
            fresh
            for name in v.csv m.png p.svg; do echo old >here/$name; done
            one_line 1 "$full" into_full gpufilter hist in.pgm -x 3 --force --out here/v.csv --mask here/m.png \
                --plot here/p.svg "$@" && [ "$(cat here/*)" = $'old\nold\nold' ]
        }
        for option in "" --json --csv; do
            # shellcheck disable=SC2086 # no option is no word
            check "stdout is full, no output is replaced: hist $option" unprinted $option
        done
        fresh
        check "one of three outputs fails, none appears" one_line 1 "$full" gpufilter hist in.pgm -x 3 -q --out here/v.csv \
            --mask here/m.png --plot /dev/full --plot-format svg
    else
        skip 7 "plots to a full device: no cairo"
    fi
else
    skip 1 "no /dev/full"
fi

# ---- file systems mounted by this test -----------------------------------------------------------------------------------
mounted() { # OPTIONS...: mount on ./disk
    mkdir -p disk && mount "$@" disk 2>/dev/null || return 1
    mounts=("$work/disk")
}
unmount() { umount disk && mounts=(); }
free_space() { df --output=avail,iavail disk | tail -n 1; }
# shellcheck disable=SC2046 # words
fill() { # KIND INPUT KIB: only KIB are free, less than the output needs; the old file stays and all space is freed
    rm -rf disk/* && sync -f disk
    head -c $((($(df --output=avail disk | tail -n 1) - $3) * 1024)) /dev/urandom >disk/old && cp disk/old old
    local before
    before=$(free_space)
    one_line 1 "$full" gpufilter smooth $2 disk/o.$1 && [ "$(ls -A disk | grep -v lost+found)" = old ] && [ "$(free_space)" = "$before" ] &&
        one_line 1 "$full" gpufilter smooth $2 disk/old --format "$1" --force && cmp disk/old old && [ "$(free_space)" = "$before" ]
}
fill_chain() { # a writer in the middle of a chain, or the last one, has no space: no output appears, the old ones stay
    fresh && rm -rf disk/*
    for name in here/a.png here/b.png disk/c.ppm; do echo old >$name; done
    for order in "here/a.png disk/c.ppm here/n.png" "here/a.png here/b.png disk/c.ppm"; do
        read -r one two three <<<"$order"
        one_line 1 "disk/c.ppm: cannot write: $full" gpufilter run -f big.ppm ! median ! write "$one" ! gaussian ! write "$two" ! hist ! write "$three" &&
            [ "$(ls -A disk here | tr '\n' ' ')" = "disk: c.ppm  here: a.png b.png " ] && [ "$(cat disk/* here/*)" = $'old\nold\nold' ] || return
    done
}
stopped() { # REASON: printed once; the remaining images are not started
    grep -q "^gpufilter: disk/.*: $1; no more files are started, --resume continues$" err && [ "$(grep -c '^gpufilter: ' err)" -eq 1 ] &&
        [ "$(sed -n 's/.* \([0-9]*\) failed, .*/\1/p' err)" -le 3 ] && grep -q ' skipped, [0-9]* not started in ' err || { cat err; return 1; }
}
no_directory() { # REASON COMMAND: run COMMAND on the output directory during the first image of a batch
    rm -rf disk/out pipe && mkfifo pipe
    gpufilter smooth pipe many/*.ppm -O disk/out --threads 1 --raw 60x40x3:u8 2>err &
    exec 9>pipe
    sh -c "$2"
    head -c 7200 /dev/zero >&9
    exec 9>&-
    wait $!
    [ $? -eq 1 ] && stopped "$1"
}
directories_full() { # the directories of a tree cannot be created
    rm -rf tree disk/* && mkdir -p disk/out && for i in {1..9}; do mkdir -p tree/$i && cp in.ppm tree/$i; done
    mount -o remount,nr_inodes=5 disk
    gpufilter smooth -R tree -O disk/out 2>err
    [ $? -eq 1 ] && stopped "$full" && grep -q '^0 done, 1 failed, 0 skipped, 8 not started' err
}
fill_batch() { # BYTES: some outputs fit; --resume makes the rest when there is space
    rm -rf disk/* many && mkdir many
    for i in {1..30}; do cp in.ppm many/$i.ppm; done
    head -c "$1" /dev/zero >disk/ballast
    gpufilter smooth many/*.ppm -O disk/out --threads 3 2>err
    [ $? -eq 1 ] && stopped "$full" && [ "$(ls disk/out | wc -l)" -lt 30 ] && [ "$(find disk -name '.*.tmp' | wc -l)" -eq 0 ] || return 1
    for file in disk/out/*; do [ ! -e "$file" ] || cmp "$file" want.ppm || return 1; done
    rm disk/ballast
    gpufilter smooth many/*.ppm -O disk/out --threads 3 --resume --force -q || return 1
    for i in {1..30}; do cmp disk/out/$i.ppm want.ppm || return 1; done
}
if [ "$(id -u)" -eq 0 ] && mounted -t tmpfs -o size=300k,mode=777 none; then
    fresh
    for kind in png ppm pam tif bmp tga raw; do check "a disk in memory is full: $kind" fill $kind big.ppm 200; done
    check "a disk in memory is full: samples" one_line 1 "$full" gpufilter hist big.ppm -q --channel all -x all --out disk/v.csv \
        --mask disk/m.png
    check "a disk in memory is full: a chain" fill_chain
    mount -o remount,size=6000k disk
    check "a disk in memory is full: a batch" fill_batch 2500000
    check "a batch whose output directory is removed" no_directory "its directory does not exist.*" "rm -r disk/out"
    check "a batch whose output directory becomes read-only" no_directory ".*Read-only file system" "mount -o remount,ro disk"
    mount -o remount,rw disk
    check "no inodes for directories" directories_full
    rm -rf disk/*
    check "no inode for a file" one_line 1 "$full" sh -c 'mount -o remount,nr_inodes=1 disk && exec gpufilter smooth in.ppm disk/o.png'
    check "a read-only file system" one_line 1 'Read-only file system' sh -c \
        'mount -o remount,ro disk && exec gpufilter smooth in.ppm disk/o.png'
    unmount
else
    skip 14 "full disks: only root may mount file systems"
fi
if [ "$(id -u)" -eq 0 ] && truncate -s 10M image && mkfs.ext4 -q -F -m 0 -b 1024 -J size=1 image 2>/dev/null && mounted -o loop image; then
    fresh
    for kind in png ppm pam; do check "a disk is full: $kind" fill $kind big.ppm 300; done
    check "a disk is full: a batch" fill_batch 5500000
    if chattr -R +i disk/out 2>/dev/null; then
        check "an immutable file" one_line 1 'cannot' gpufilter smooth in.ppm disk/out/1.ppm --force
        chattr -R -i disk/out
    else
        skip 1 "the file system has no immutable files"
    fi
    unmount
else
    skip 5 "a full disk: no loop device or no mkfs.ext4"
fi

check_summary
