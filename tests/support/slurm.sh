# To be sourced: a Slurm cluster of one node on this machine, with slurm_start DIRECTORY and slurm_stop. Its configuration,
# ports and keys are in that directory. Other machines cannot reach it.
# shellcheck shell=bash
slurm_jobs=()

# Print why Slurm cannot be started; fails if it can be.
slurm_missing() {
    local program
    if [ "$(id -u)" -ne 0 ]; then
        echo "only root can start Slurm"
        return 0
    fi
    for program in slurmctld slurmd munged sbatch; do
        PATH=$PATH:/usr/sbin:/sbin command -v $program >/dev/null 2>&1 && continue
        echo "$program is not installed (Debian's packages slurmctld, slurmd, slurm-client and munge)"
        return 0
    done
    return 1
}

free_port() { # print a port without a listener
    local port
    for _ in $(seq 50); do
        port=$((20000 + RANDOM % 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo $port
}

slurm_state() { timeout 2 sinfo --noheader --format %T 2>/dev/null; }

slurm_start() { # DIRECTORY
    local directory=$1 host controller
    host=$(hostname -s)
    PATH=$PATH:/usr/sbin:/sbin
    mkdir -p "$directory/state" "$directory/spool" && chmod 755 "$directory" || return
    (umask 077 && head -c 1024 /dev/urandom >"$directory/key")
    controller=$(free_port)
    unset "${!SLURM@}" "${!SBATCH@}" # the test itself may be a Slurm job
    export SLURM_CONF=$directory/slurm.conf
    cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$(free_port)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$directory/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$directory/state
SlurmdSpoolDir=$directory/spool
SlurmctldPidFile=$directory/slurmctld.pid
SlurmdPidFile=$directory/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8
PartitionName=all Nodes=$host Default=YES State=UP
END
    munged --foreground --key-file="$directory/key" --socket="$directory/munge.socket" --pid-file="$directory/munged.pid" \
        --log-file="$directory/munged.log" --seed-file="$directory/seed" >"$directory/munged.out" 2>&1 &
    slurm_jobs=($!)
    slurmctld -D -f "$SLURM_CONF" >"$directory/slurmctld.out" 2>&1 &
    slurm_jobs=($! "${slurm_jobs[@]}")
    slurmd -D -f "$SLURM_CONF" >"$directory/slurmd.out" 2>&1 &
    slurm_jobs=($! "${slurm_jobs[@]}")
    for _ in $(seq 100); do
        [ "$(slurm_state)" != idle ] || return 0
        sleep 0.1
    done
    tail -n 5 "$directory"/*.out
    return 1
}

# Stop the controller and the daemons before munged, which they need.
slurm_stop() {
    local job
    [ ${#slurm_jobs[@]} -eq 0 ] || scancel --user root 2>/dev/null
    for job in "${slurm_jobs[@]}"; do
        kill "$job" 2>/dev/null
        for _ in $(seq 100); do
            kill -0 "$job" 2>/dev/null || break
            sleep 0.1
        done
        kill -s KILL "$job" 2>/dev/null
        wait "$job" 2>/dev/null
    done
    slurm_jobs=()
}
