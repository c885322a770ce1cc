#!/usr/bin/env bash
# A SLURM of one node on this machine, for tests and for trying things out: without root where its packages are
# installed (munge, slurmctld, slurmd, slurm-client), without accounting, with two stand-ins for GPUs.
#   cluster.sh start FOLDER    start it (exit code 3: packages are missing); all it writes lies in FOLDER.
#                              Then: source FOLDER/env.sh
#   cluster.sh stop FOLDER     cancel its jobs and stop it
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

usage="usage: cluster.sh start|stop FOLDER"
[[ $# == 2 ]] || { echo "$usage" >&2; exit 2; }
mkdir -p "$2"
folder=$(cd "$2" && pwd)
export SLURM_CONF=$folder/slurm.conf

pid_of() { # the process behind a daemon's pid file, if that is what it still is
  local pid
  pid=$(cat "$folder/$1.pid" 2> /dev/null) && [[ $(cat "/proc/$pid/comm" 2> /dev/null) == "$1" ]] && echo "$pid"
}

wait_until() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

configure() {
  local ports host
  # two ports that nothing listens on
  ports=($(python3 -c '
import socket
probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(probe.getsockname()[1] for probe in probes))'))
  host=$(hostname -s)
  mkdir -p "$folder"/{state,spool,bin}
  (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")

  cat > "$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
# no cgroups, no accounting
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/finished-jobs.txt
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
# look at once whether a new job can start, and end jobs over their time limit within seconds
SchedulerParameters=batch_sched_delay=0,sched_interval=1
OverTimeLimit=0
KillWait=5
# remember jobs for longer than the tests take
MinJobAge=3600
ReturnToService=2
# the node has what is said here, whatever the machine has
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES DefMemPerCPU=500 State=UP
PartitionName=gpu Nodes=$host DefMemPerCPU=500 State=UP
CONF
  # stand-ins for GPUs need some device file each
  printf 'Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n' > "$folder/gres.conf"
  # slurmd loads a cgroup plugin though none is wanted, and its search for the right one can fail in a container;
  # "disabled" is new in 24.05
  local plugin=cgroup/v1
  [[ $(slurmd -V) =~ \ (2[4-9]|[3-9][0-9])\. ]] && plugin=disabled
  echo "CgroupPlugin=$plugin" > "$folder/cgroup.conf"

  # Snakemake's plugin takes SLURM_CONF away from the srun that it starts inside a job: give it back
  cat > "$folder/bin/srun" <<SRUN
#!/bin/sh
SLURM_CONF='$SLURM_CONF' exec '$(command -v srun)' "\$@"
SRUN
  chmod 755 "$folder/bin/srun"
  echo "export SLURM_CONF='$SLURM_CONF' PATH='$folder/bin':\"\$PATH\"" > "$folder/env.sh"
}

is_idle() { [[ $(sinfo -h -p main -o %T 2> /dev/null) == idle ]]; }

start() {
  local missing=() command
  for command in munged slurmctld slurmd sbatch; do
    command -v "$command" > /dev/null || missing+=("$command")
  done
  if ((${#missing[@]})); then
    echo "no ${missing[*]}: install SLURM (Debian: apt-get install munge slurmctld slurmd slurm-client)" >&2
    exit 3
  fi
  if pid_of slurmctld > /dev/null; then
    echo "$folder: runs already; cluster.sh stop $folder" >&2
    exit 1
  fi
  rm -rf "$folder"/{state,spool}
  configure
  trap 'echo "SLURM did not start:" >&2; tail -n 5 "$folder"/*.log >&2; stop' ERR
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --num-threads=2 \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
  slurmctld -c
  slurmd
  wait_until 20 is_idle
  trap - ERR
  echo "SLURM is up; source $folder/env.sh"
}

no_jobs() { [[ -z $(squeue -h 2> /dev/null) ]]; }
gone() { [[ -z $(pid_of "$1") ]]; }

stop() {
  local daemon pid
  if pid_of slurmctld > /dev/null; then
    scancel --user="$(id -un)" || true
    wait_until 15 no_jobs || true
  fi
  for daemon in slurmd slurmctld munged; do
    if pid=$(pid_of "$daemon"); then
      kill "$pid"
      wait_until 10 gone "$daemon" || kill -9 "$pid"
    fi
  done
}

case $1 in
  start | stop) "$1" ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
