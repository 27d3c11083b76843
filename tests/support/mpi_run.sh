# shellcheck shell=bash
# For tests that run mpirun, to be sourced: what it needs, and hosts of one's own. Processes of one machine are on two
# hosts for MPI if these have names of their own: mpirun reaches them through what it takes for ssh.

# Leave to start more ranks than there are cores, also for the root of a container.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Without a search for networks, which takes longer than all else; containers forbid looking into another process.
export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx OMPI_MCA_btl_vader_single_copy_mechanism=none
# Some roots have no /sys, which is then told once a rank.
export HWLOC_HIDE_ERRORS=2
# Open MPI has leaks of its own.
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_leaks=0}

mpi_missing() { # BUILD: says why not, and succeeds, if it cannot be run
    if ! command -v mpirun >/dev/null || [ ! -x "$1/gpufilter-mpi" ]; then
        echo "there is no mpirun, or no gpufilter-mpi (packages openmpi-bin, libopenmpi-dev)"
    elif grep -q 'fsanitize=thread' "$1/config"; then
        echo "Open MPI is not made for the thread sanitizer"
    else
        return 1
    fi
}

mpi_hosts() { # FILE: writes the stand-in for ssh there; fails where this user may not name hosts
    unshare --uts true 2>/dev/null || return 1
    cat >"$1" <<'END'
#!/bin/sh
# HOST COMMAND... (were it called ssh, it would get options of ssh, too)
host=$1
shift
exec unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
END
    chmod +x "$1"
    # Whatever the machine says of how ranks are started: a sandbox may forbid other hosts.
    export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$1 OMPI_MCA_btl=self,vader,tcp
}
