# To be sourced by shell tests: a temporary directory, $work, and counted checks. A test ends with check_summary, which prints
# the line that tests/run reads.
# shellcheck shell=bash
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LSAN_OPTIONS=${LSAN_OPTIONS-suppressions=$PWD/tests/support/lsan.txt:print_suppressions=0}

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL $what"
        head -n 20 "$work/log"
    fi
}

by_tier() { # CHECK TEST LONG: print the value for the current tier (tests/run)
    case ${GF_TEST_TIER:-test} in check) echo "$1" ;; test) echo "$2" ;; *) echo "$3" ;; esac
}

has_cairo() { gpufilter --version | grep -q ', cairo,'; }

count_unfinished() { # PID: print the number of its outputs that have no name yet, or a temporary one
    find "/proc/$1/fd" -type l -printf '%l\n' 2>/dev/null | grep -cE '/#[0-9]+ \(deleted\)$|/\..*\.gpufilter-[0-9a-f]+\.tmp$'
}

# Root ignores permissions: tests of them run as another user, of number $other_user. Fails if that is not possible.
other() { # COMMAND...
    local id=${other_user:-65534}
    if [ "$(id -u)" -ne 0 ]; then "$@"; else setpriv --reuid="$id" --regid="$id" --clear-groups "$@"; fi
}

within() { # SECONDS COMMAND...: wait until COMMAND succeeds; fails after SECONDS
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.01
    done
}
has_files() { [ "$(ls "$1" 2>/dev/null | wc -l)" -ge "$2" ]; } # DIRECTORY COUNT: at least so many

wait_all() { # wait for all background jobs; fails if one of them failed
    local job
    for job in $(jobs -p); do
        wait "$job" || return 1
    done
}

skip() { # COUNT REASON: the reason contains "GPU" if a GPU is needed
    skipped=$((skipped + $1))
    echo "SKIP $1: $2"
}

check_summary() { # print the summary; fails if a check failed
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
}
