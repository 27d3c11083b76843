#!/usr/bin/env bash
# Batches of many files: tests/system/batch.sh BUILD. Two concurrent runs, few file descriptors, and directories without
# permission.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/batch_run.sh

# Two concurrent runs into one directory.
together() {
    gpufilter smooth -R in/1 -O both --threads 2 -q 2>/dev/null &
    gpufilter smooth -R in/2 -O both --threads 2 -q 2>/dev/null
    wait $!
    gpufilter smooth -R in/1 in/2 -O both --resume 2>stderr
    grep -q '^0 done, [0-9]* failed, 7[0-9] skipped' stderr
}
the_same() {
    rm -rf both
    gpufilter smooth -R in -O both --threads 1 "$@" -q 2>/dev/null &
    gpufilter smooth -R in -O both --threads 1 "$@" -q 2>/dev/null
    wait $!
    gpufilter smooth -R in -O both --resume 2>stderr
    summary 0 "$failed_files" "$made" stderr && same both
}
check "two concurrent runs of different inputs" together
check "two concurrent runs of the same inputs" the_same
check "two concurrent runs of the same inputs with --force" the_same --force

# The descriptor limit is too low for 64 threads.
low_descriptor_limit() {
    (ulimit -n 64 && gpufilter smooth -R in -O few --threads 64 2>stderr)
    summary "$made" "$failed_files" 0 stderr && same few
}
check "a low limit of open files" low_descriptor_limit

# Directories without read or write permission.
chmod 755 .
if other gpufilter --version >/dev/null 2>&1; then
    mkdir -m 555 closed && mkdir -m 777 open && mkdir -p -m 755 part/ok part/unreadable && cp in/1/001.pgm part/ok
    chmod 000 part/unreadable
    mkdir -m 777 half && mkdir -m 555 half/ok
    closed() { other gpufilter smooth in/1/001.pgm in/1/008.pgm -O closed 2>stderr
        [ $? -eq 1 ] && grep -q '^0 done, [12] failed, 0 skipped' stderr && [ -z "$(ls -A closed)" ] &&
            [ "$(grep -c 'cannot create a file in its directory: Permission denied; no more files are started' stderr)" -eq 1 ]; }
    below() { other gpufilter smooth in/1/001.pgm -O closed/new 2>stderr
        [ $? -eq 1 ] && grep -q '^gpufilter: closed/new: cannot create the directory: Permission denied$' stderr; }
    unreadable() { other gpufilter smooth -R part -O open 2>stderr
        [ $? -eq 1 ] && grep -q '^gpufilter: part/unreadable: cannot read the directory: ' stderr && summary 1 1 0 stderr; }
    partly() { other gpufilter smooth -R part in/1/001.pgm -O half 2>stderr
        [ $? -eq 1 ] && summary 1 2 0 stderr; }
    above() { mkdir -p two/no two/ok && cp in/1/001.pgm two/no && cp in/1/001.pgm two/ok
        mkdir -m 755 over && mkdir -m 777 over/ok && other gpufilter smooth -R two -O over 2>stderr
        [ $? -eq 1 ] && summary 1 1 0 stderr; }
    dry() { other gpufilter smooth in/1/001.pgm in/1/008.pgm -O closed --dry-run 2>stderr
        [ $? -eq 1 ] && grep -q '^gpufilter: closed: cannot write to the directory: Permission denied$' stderr &&
            grep -q '^dry run: 0 to do, 1 failed, 0 skipped$' stderr; }
    unsearched() { mkdir -p blind/d/sub && cp in/1/001.pgm blind/d/sub && cp in/1/008.pgm blind && chmod 644 blind/d
        mkdir -m 777 seen && other gpufilter smooth -R blind -O seen 2>stderr
        [ $? -eq 1 ] && grep -q '^gpufilter: blind/d/sub: cannot stat: Permission denied$' stderr && summary 1 1 0 stderr; }
    check "an output directory without write permission" closed
    check "a new directory below it" below
    check "an input directory without read permission" unreadable
    check "a subdirectory without write permission" partly
    check "a new subdirectory in a directory without write permission" above
    check "a dry run into a directory without write permission" dry
    check "an input directory with read but without search permission" unsearched
    chmod 755 part/unreadable blind/d
else
    skip 1 "directories without permission: cannot switch to another user"
fi

check_summary
