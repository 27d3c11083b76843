# shellcheck shell=bash
# To be sourced by tests that run mpirun: settings for it, and simulated hosts. For MPI, processes of one machine are on
# different hosts if their host names differ. mpirun starts them through a replacement of ssh.

# Permit more ranks than cores, and root in a container.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Do not search for networks, which dominates the start-up time. Containers forbid access to the memory of processes.
export OMPI_MCA_btl=self,vader OMPI_MCA_pml=ob1 OMPI_MCA_osc=^ucx OMPI_MCA_btl_vader_single_copy_mechanism=none
# Some containers have no /sys: hide the warning of each rank.
export HWLOC_HIDE_ERRORS=2
# Open MPI leaks memory.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

mpi_missing() { # BUILD: print the reason and succeed if MPI cannot be run
    if ! command -v mpirun >/dev/null || [ ! -x "$1/gpufilter-mpi" ]; then
        echo "there is no mpirun, or no gpufilter-mpi (packages openmpi-bin, libopenmpi-dev)"
    elif grep -q 'fsanitize=thread' "$1/config"; then
        echo "Open MPI does not support the thread sanitizer"
    else
        return 1
    fi
}

mpi_hosts() { # FILE: write the replacement of ssh; fails if this user may not set host names
    unshare --uts true 2>/dev/null || return 1
    cat >"$1" <<'END'
#!/bin/sh
# HOST COMMAND... (a program named ssh would also receive options of ssh)
host=$1
shift
exec unshare --uts sh -c 'hostname "$0" && exec sh -c "$1"' "$host" "$*"
END
    chmod +x "$1"
    # Override the settings of the machine: a sandbox may forbid other hosts.
    export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$1 OMPI_MCA_btl=self,vader,tcp
}
