#!/usr/bin/env bash
# Outputs under adverse conditions: tests/system/outputs.sh BUILD. Limits, closed descriptors, one file in two roles,
# directories without write permission. Each failure prints one line, returns the right exit code, keeps existing files
# and leaves no others.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/outputs_run.sh

# ---- closed descriptors, broken pipes ------------------------------------------------------------------------------------
closed() { # DESCRIPTORS COMMAND...
    local which=$1
    shift
    (
        case $which in *0*) exec <&- ;; esac
        case $which in *1*) exec >&- ;; esac
        case $which in *2*) exec 2>&- ;; esac
        exec "$@"
    )
}
# Standard streams must not write into an output whose descriptor is below 3.
nothing_mixed_in() { # DESCRIPTORS
    fresh
    closed "$1" gpufilter smooth in.ppm here/o.png --verbose >/dev/null
    cmp here/o.png want.png || return 1
    closed "$1" gpufilter hist in.pgm -q -x 3 --out here/v.csv --mask here/m.png --plot here/p.svg >/dev/null
    cmp here/v.csv v.csv && cmp here/m.png m.png && cmp here/p.svg p.svg && [ "$(ls -A here | wc -l)" -eq 4 ] || return 1
    case $1 in *1*) # a report that cannot be printed
        closed "$1" gpufilter smooth in.ppm here/other.png --json >/dev/null
        [ $? -eq 1 ] && [ ! -e here/other.png ] ;;
    esac
}
if has_cairo; then
    gpufilter hist in.pgm -q -x 3 --out v.csv --mask m.png --plot p.svg
    for which in 0 1 2 01 02 12 012; do
        check "with descriptors $which closed" nothing_mixed_in $which
    done
else
    skip 7 "closed descriptors with a plot: no cairo"
fi
fresh
for what in "smooth in.ppm - --format pam" "hist in.pgm" "hist in.pgm --json" "info in.png" "devices" "--help"; do
    check "stdout is closed: $what" one_line 1 'Bad file descriptor' closed 1 gpufilter $what
done
check "stdin is closed" one_line 1 'standard input: cannot read: Bad file descriptor' closed 0 gpufilter smooth - here/o.png
code_without_stderr() { closed 2 gpufilter smooth none.png here/o.png; [ $? -eq 1 ] && [ -z "$(ls -A here)" ]; }
check "an error without stderr" code_without_stderr
piped() { # CODE COMMAND...: write into a pipe without a reader
    local want=$1
    shift
    "$@" 2>err | true
    [ "${PIPESTATUS[0]}" -eq "$want" ] && [ "$(wc -l <err)" -le 1 ]
}
ignoring_sigpipe() { (trap '' PIPE && exec "$@"); }
for kind in png ppm pam; do
    check "a broken pipe: $kind" piped 141 gpufilter smooth big.ppm - --format $kind
    check "a broken pipe, ignored: $kind" piped 1 ignoring_sigpipe gpufilter smooth big.ppm - --format $kind
done

# ---- limits ------------------------------------------------------------------------------------------------------------
limited() { # ULIMIT-OPTION VALUE COMMAND...
    local option=$1 value=$2
    shift 2
    (ulimit "$option" "$value" && exec "$@")
}
over_old() { # KIND: exceed the file size limit when replacing an existing file
    fresh
    echo old >here/o
    # shellcheck disable=SC2046 # words
    one_line 1 'File too large' limited -f 4 gpufilter smooth $(input_of "$1") here/o --format "$1" --force &&
        [ "$(cat here/o)" = old ]
}
for kind in png ppm pam jpg tif bmp tga hdr raw pgm pfm; do
    check "$kind exceeds the file size limit" over_old $kind
done
shm=$(mktemp -d /dev/shm/gpufilter-XXXXXX 2>/dev/null)
if [ -n "$shm" ]; then
    in_memory() {
        one_line 1 'File too large' limited -f 4 gpufilter smooth big.ppm "$shm/o.ppm" && [ -z "$(ls -A "$shm")" ]
    }
    check "an output in memory exceeds the file size limit" in_memory
    rm -rf "$shm"
else
    skip 1 "a limit in memory: no /dev/shm"
fi
samples_over() { fresh; one_line 1 'File too large' limited -f 1 gpufilter hist in.pgm --bins 2 -x 1 -q --out here/v.csv --mask here/m.png; }
check "samples exceed the file size limit" samples_over

# Under any limit, the run succeeds or prints one line with the reason.
done_or_reported() { # COMMAND...: writes here/o.png
    local code
    fresh
    "$@" 2>err
    code=$?
    case $code in
    0) cmp here/o.png want.png && [ "$(ls -A here)" = o.png ] ;;
    1 | 3) [ "$(wc -l <err)" -eq 1 ] && grep -q '^gpufilter: ' err && [ -z "$(ls -A here)" ] ;;
    127) grep -q 'error while loading shared libraries' err ;; # the program did not start
    *) false ;;
    esac && return
    echo "exit $code: $*"
    cat err
    return 1
}
few_files() { for n in {3..12}; do done_or_reported limited -n "$n" gpufilter smooth in.ppm here/o.png --threads 4 || return 1; done; }
check "few descriptors" few_files
little_memory() {
    local size=4000 wins=0
    # Below this limit, the program does not start.
    until limited -v $size gpufilter --version >/dev/null 2>&1; do size=$((size + 1000)); done 2>/dev/null
    for (( ; size < 400000; size = size * 17 / 16)); do
        done_or_reported limited -v $size gpufilter smooth in.ppm here/o.png --threads 4 || return 1
        [ -s here/o.png ] && wins=$((wins + 1))
    done
    [ $wins -gt 0 ]
}
if [ -z "$sanitized" ]; then
    check "little memory" little_memory
else
    skip 1 "little memory: a sanitizer needs more"
fi

# ---- another user ------------------------------------------------------------------------------------------------------
other_user=64321 # without other processes
chmod 755 . && chmod 644 in.*
if other gpufilter --version >/dev/null 2>&1; then
    # No shell in between: only setpriv itself can execute a program in root's private directory.
    limited_user() { (ulimit -u "$1" && other gpufilter smooth in.ppm here/o.png --threads 8); }
    few_threads() { for n in 1 2 3 5; do done_or_reported limited_user $n || return 1; done; }
    # A sanitizer has one more thread, which looks for leaks.
    [ "$(id -u)" -ne 0 ] || [ -n "$sanitized" ] || check "few threads" few_threads
    read_only() { # DIRECTORY'S MODE TEXT
        fresh
        mkdir here/f && echo old >here/f/o.png && chmod 666 here/f/o.png && chmod "$1" here/f
        one_line 1 "$2" other gpufilter smooth in.ppm here/f/o.png --force -q && [ "$(cat here/f/o.png)" = old ] &&
            one_line 1 "$3" other gpufilter smooth in.ppm here/f/new.png -q
        local code=$?
        chmod 755 here/f
        [ $code -eq 0 ] && [ "$(ls -A here/f)" = o.png ]
    }
    check "a directory without write permission" read_only 555 'cannot create a file in its directory: Permission denied' \
        'cannot create a file in its directory: Permission denied'
    check "a directory without search permission" read_only 644 'Permission denied' 'Permission denied'
    # Write and search permission suffice.
    unread() { fresh; mkdir here/f; chmod 333 here/f; other gpufilter smooth in.ppm here/f/o.png -q && cmp here/f/o.png want.png; }
    [ "$(id -u)" -ne 0 ] || check "a directory without read permission" unread
    # If the user may not give the new file to the old file's group, the group of the new file gets no permissions.
    no_group() { fresh; echo old >here/o.png; chown 0:54321 here/o.png && chmod 664 here/o.png
        other gpufilter smooth in.ppm here/o.png --force -q && [ "$(stat -c %a:%u here/o.png)" = 604:64321 ]; }
    [ "$(id -u)" -ne 0 ] || check "a group that the user is not in" no_group
    unsynced() { fresh; mkdir here/f; chmod 333 here/f; one_line 1 'cannot open its directory for fsync: Permission denied' \
        other gpufilter smooth in.ppm here/f/o.png -q --sync always && [ -z "$(ls -A here/f)" ]; }
    [ "$(id -u)" -ne 0 ] || check "syncing a directory without read permission" unsynced
else
    skip 5 "directories without permission: cannot switch to another user"
fi

# ---- append-only directories -----------------------------------------------------------------------------------------------
append_only() { # new files can be made, and none replaced; no temporary file is left
    gpufilter smooth in.ppm here/f/new.png -q && cmp here/f/new.png want.png &&
        one_line 1 'o.png: its directory is append-only, so files in it cannot be replaced or removed; write to another directory' \
            gpufilter smooth in.ppm here/f/o.png --force && [ "$(cat here/f/o.png)" = old ] && [ "$(ls -A here/f | wc -l)" -eq 2 ] &&
        one_line 1 'append-only' gpufilter hist in.pgm -x 3 -q --out here/f/v.csv --mask here/f/o.png --force && [ "$(ls -A here/f | wc -l)" -eq 2 ]
}
fresh
mkdir here/f && echo old >here/f/o.png
if chattr +a here/f 2>/dev/null; then
    check "an append-only directory" append_only
    chattr -a here/f
else
    skip 1 "an append-only directory: only root may make one, on some file systems"
fi

# ---- names -------------------------------------------------------------------------------------------------------------
fresh
name=$(printf 'n%.0s' {1..251}).png
longest() { gpufilter smooth in.ppm "here/$name" -q && gpufilter smooth in.ppm "here/$name" -q --force && cmp "here/$name" want.png &&
    [ "$(ls -A here)" = "$name" ]; }
check "a name of 255 bytes" longest
check "a name of 256 bytes" one_line 1 'File name too long' gpufilter smooth in.ppm "here/n$name"
deep() { # paths from 3900 bytes to beyond the system's limit: all or nothing, also when replacing
    local directory=here n path
    fresh
    for n in {1..15}; do directory=$directory/$(printf 'd%.0s' {1..250}); done
    mkdir -p $directory
    for ((n = 60; n < 260; n += 20)); do
        path=$directory/$(printf 'f%.0s' $(seq $n)).png
        for force in '' --force; do
            gpufilter smooth in.ppm "$path" -q $force 2>err
            case $? in
            0) [ ! -s err ] && cmp "$path" want.png || return 1 ;;
            1) [ "$(wc -l <err)" -eq 1 ] || return 1 ;;
            *) return 1 ;;
            esac
        done
        rm -f "$path" 2>/dev/null
    done
    one_line 1 'File name too long' gpufilter smooth in.ppm "$directory/$(printf 'x%.0s' {1..250})/$(printf 'x%.0s' {1..250})/o.png" &&
        [ -z "$(find $directory -type f)" ]
}
check "long paths" deep
too_deep() { # a path that leaves space for the output's name, but not for a temporary name
    local directory=here name=o.png
    fresh
    for n in {1..15}; do directory=$directory/$(printf 'd%.0s' {1..250}); done
    directory=$directory/$(printf 'e%.0s' {1..230})/$(printf 'e%.0s' {1..69})
    mkdir -p $directory && echo old >$directory/$name || return 1
    one_line 1 'its path is too long for a temporary file in its directory; change to that directory and use a relative path' \
        gpufilter smooth in.ppm $directory/$name --force && [ "$(cat $directory/$name)" = old ] && [ "$(ls -A $directory)" = $name ] &&
        (cd -P $directory && gpufilter smooth "$work/in.ppm" $name --force -q) && cmp $directory/$name want.png && [ "$(ls -A $directory)" = $name ]
}
check "a path too long for a temporary name" too_deep
fresh
mkdir here/directory && ln -s nothing here/dangling.png && mkfifo here/pipe.png
check "a directory" one_line 1 'is a directory' gpufilter smooth in.ppm here/directory --force --format png
check "a link to nothing" one_line 1 'dangling symbolic link' gpufilter smooth in.ppm here/dangling.png --force
into_pipe() { cat here/pipe.png >got & gpufilter smooth in.ppm here/pipe.png && wait $! && cmp got want.png && [ -p here/pipe.png ]; }
check "a named pipe" into_pipe

# ---- one file in two roles ---------------------------------------------------------------------------------------------
start() { # make files in `here`: in.ppm, a hard link and a symbolic link to it, and an old output
    fresh
    cp in.ppm here/in.ppm && ln here/in.ppm here/hard.ppm && ln -s in.ppm here/soft.ppm && echo old >here/o.ppm
}
itself() { # OUTPUT
    start
    one_line 1 'already exists' gpufilter smooth here/in.ppm "here/$1" && cmp here/in.ppm in.ppm &&
        gpufilter smooth here/in.ppm "here/$1" --force -q && cmp "here/$1" want.ppm && [ -L here/soft.ppm ] &&
        case $1 in hard.ppm) cmp here/in.ppm in.ppm ;; *) cmp here/in.ppm want.ppm && cmp here/hard.ppm in.ppm ;; esac &&
        [ "$(ls -A here | wc -l)" -eq 4 ]
}
for output in in.ppm soft.ppm hard.ppm; do check "input and output are the same file: $output" itself $output; done
map_over_input() { start; one_line 2 'already exists' gpufilter compare here/in.ppm here/hard.ppm --diff here/in.ppm &&
    gpufilter compare here/in.ppm here/hard.ppm --diff here/in.ppm --force -q && [ "$(head -c 2 here/in.ppm)" = P6 ] && cmp here/hard.ppm in.ppm; }
check "--diff replaces an input" map_over_input
printed() { # REDIRECTION COMMAND...: in `here`, redirect standard output to an input or output
    start
    local redirection=$1 target
    shift
    target=${redirection##*[<>]}
    cp "here/$target" before
    (cd here && eval "gpufilter $* $redirection" 2>../err)
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q 'ppm: .*is also standard output\|ppm: .*is redirected to it' err && [ "$(ls -A here | wc -l)" -eq 4 ] || { cat err; return 1; }
    case $redirection in '>'[!\>]*) [ ! -s "here/$target" ] ;; *) cmp "here/$target" before ;; esac # the shell truncates the file
}
into_stderr() { start; (cd here && gpufilter smooth in.ppm o.ppm --force 2>>o.ppm)
    [ $? -eq 2 ] && [ "$(head -n 1 here/o.ppm)" = old ] && [ "$(wc -l <here/o.ppm)" -eq 2 ] && grep -q '^gpufilter: o.ppm: ' here/o.ppm; }
check "stderr is also the output" into_stderr
for redirection in '>' '>>' '1<>'; do
    check "stdout is also the output: $redirection" printed "${redirection}o.ppm" smooth in.ppm o.ppm --force
    check "stdout is also the output of samples: $redirection" printed "${redirection}o.ppm" hist in.ppm -x 3 --out o.ppm --sample-format csv --force
    ! has_cairo || check "stdout is also the plot: $redirection" printed "${redirection}o.ppm" hist in.ppm --plot o.ppm --plot-format svg --force
done
for redirection in '>>' '1<>'; do
    for what in 'smooth in.ppm - --format ppm' 'hist in.ppm' 'hist soft.ppm --json' 'dot in.ppm hard.ppm'; do
        check "stdout is also the input: $what $redirection" printed "${redirection}in.ppm" "$what"
    done
done
same_directory() { start; one_line 1 'use --force to replace them' gpufilter smooth here/in.ppm -O here -q && cmp here/in.ppm in.ppm &&
    gpufilter smooth here/in.ppm -O here -q --force && cmp here/in.ppm want.ppm; }
check "outputs and inputs have the same directory" same_directory

# ---- all outputs or none -----------------------------------------------------------------------------------------------
# A target becomes a directory during the run: the outputs named before it get their previous files back.
becomes_directory() { # OLD-OR-NEW WHICH
    local program name
    fresh
    rm -f pipe && mkfifo pipe
    for name in v.csv m.png p.svg; do [ "$1" = new ] || echo "old $name" >here/$name; done
    ls -i here >before
    gpufilter hist pipe -q -x 3 --out here/v.csv --mask here/m.png --plot here/p.svg --force 2>err &
    program=$!
    exec 9>pipe
    head -c 5000 in.pgm >&9
    under_way() { [ "$(count_unfinished $program)" -ge 3 ]; }
    within 20 under_way
    mv "here/$2" moved 2>/dev/null
    mkdir "here/$2" && tail -c +5001 in.pgm >&9
    exec 9>&-
    wait $program
    [ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "$2: cannot rename the output to its final name: Is a directory" err || { cat err; return 1; }
    rmdir "here/$2" && mv moved "here/$2" 2>/dev/null
    ls -i here | diff before -
}
has_cairo || skip 9 "several outputs, one of them a plot: no cairo"
for state in $(has_cairo && echo new old); do
    for which in v.csv m.png p.svg; do check "$which becomes a directory, the other outputs are $state" becomes_directory $state $which; done
done

# ---- sync --------------------------------------------------------------------------------------------------------------
in_order() { # LETTERS ARGUMENTS...: the successful calls in order: Mkdir, Fsync, fDatasync, Linkat, renAme
    local want=$1 got
    shift
    strace -f -qq -e trace=mkdir,fsync,fdatasync,linkat,rename,renameat2 -o trace gpufilter smooth in.ppm "$@" -q --threads 1 || return 1
    # strace prints a call in two parts if another thread interrupts it.
    got=$(sed -nE 's/^[0-9]+ +(<\.\.\. )?(mkdir|fsync|fdatasync|linkat|rename)[ (].*= 0$/\2/p' trace |
        sed 's/mkdir/M/; s/fsync/F/; s/fdatasync/D/; s/linkat/L/; s/rename/A/' | tr -d '\n')
    [ "$got" = "$want" ] || { echo "$got, want $want"; return 1; }
}
on_disk() {
    fresh
    # The new directory and its parent; the output; the name; its directory.
    in_order MFMFFLF -O here/a/b --sync always && in_order FLAF -O here/a/b --sync always --force &&
        in_order L here/o.png && in_order DLA here/o.png --force && in_order LA here/o.png --force --sync never &&
        in_order ML -O here/c --sync auto
}
if [ -z "$sanitized" ] && strace -o trace true 2>/dev/null; then
    check "order of syncs and renames" on_disk
else
    skip 1 "order of syncs and renames: no strace, or a sanitizer is on"
fi

check_summary
