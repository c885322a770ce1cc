#!/usr/bin/env bash
# A SLURM of three nodes on this machine, for tests and for trying things out: without root where its packages are
# installed (munge, slurmctld, slurmd, slurm-client), each node with two stand-ins for GPUs.
#   cluster.sh start FOLDER [accounting]   start it (exit code 3: packages are missing); all it writes lies in FOLDER.
#                                          With a database of jobs, it needs slurmdbd, mariadb-server-core and mariadb-client-core, too.
#                                          Then: source FOLDER/env.sh
#   cluster.sh kill FOLDER NODE            NODE dies: its daemon and all its jobs' processes are killed
#   cluster.sh up FOLDER NODE|slurmctld    start a node, or the controller, that was killed
#   cluster.sh stop FOLDER                 cancel its jobs and stop it
# Partitions: main and gpu; requeue and cancel, whose jobs make room for those of urgent, each in its way.
set -Eeuo pipefail
export PATH="$PATH:/usr/sbin:/sbin"
NODES=(node1 node2 node3)

usage="usage: cluster.sh start FOLDER [accounting] | kill FOLDER NODE | up FOLDER NODE|slurmctld | stop FOLDER"
[[ $# == [23] ]] || { echo "$usage" >&2; exit 2; }
mkdir -p "$2"
folder=$(cd "$2" && pwd)
export SLURM_CONF=$folder/slurm.conf
export SYNMASK_CLUSTER=$folder # the daemons are known by it

pid_of() { # the process behind a daemon's pid file, if it still is one of ours
  local pid
  pid=$(cat "$folder/$1.pid" 2> /dev/null) && grep -qz "^SYNMASK_CLUSTER=$folder\$" "/proc/$pid/environ" 2> /dev/null &&
    echo "$pid"
}

wait_until() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

password() { sha256sum "$folder/munge.key" | cut -c 1-32; } # of the database

configure() { # PORT...: of the controller, the nodes, slurmdbd and its database
  local host node storage=none
  host=$(hostname -s)
  [[ $accounting ]] && storage=slurmdbd
  mkdir -p "$folder"/{state,spool,bin}
  (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")

  cat > "$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
# no cgroups
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# a job whose processes use more memory than it asked for is killed
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/$storage
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
# look at once whether a new job can start, and end jobs over their time limit within seconds
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
OverTimeLimit=0
KillWait=5
# a node that says nothing for so long is dead, and its jobs are queued again; a busy machine takes its time
SlurmdTimeout=300
# remember jobs for longer than the tests take
MinJobAge=3600
ReturnToService=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
# refuse at once what no node or limit allows
EnforcePartLimits=ALL
# the nodes have what is said here, whatever the machine has
SlurmdParameters=config_overrides
CONF
  if [[ $accounting ]]; then
    cat >> "$SLURM_CONF" <<CONF
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$5
AccountingStoragePass=$folder/munge.socket
AccountingStorageEnforce=limits
CONF
    (umask 077 && cat > "$folder/slurmdbd.conf") <<CONF
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$5
SlurmUser=$(id -un)
PidFile=$folder/slurmdbd.pid
LogFile=$folder/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$6
StorageUser=slurm
StoragePass=$(password)
StorageLoc=slurm
CONF
    echo "$6" > "$folder/mariadbd.port"
  fi
  for node in "${NODES[@]}"; do
    shift
    echo "NodeName=$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$1 CPUs=64 RealMemory=256000 Gres=gpu:2 State=UNKNOWN"
  done >> "$SLURM_CONF"
  # LLN: jobs go to the node with most room, so that a few jobs lie on several
  cat >> "$SLURM_CONF" <<CONF
PartitionName=DEFAULT Nodes=ALL DefMemPerCPU=500 LLN=YES State=UP
PartitionName=main Default=YES PreemptMode=OFF
PartitionName=gpu PreemptMode=OFF
PartitionName=requeue PriorityTier=1 PreemptMode=REQUEUE
PartitionName=cancel PriorityTier=1 PreemptMode=CANCEL GraceTime=600
PartitionName=urgent PriorityTier=2 PreemptMode=OFF
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

up() { # a node, or the controller
  if [[ $1 == slurmctld ]]; then slurmctld; else slurmd -N "$1"; fi
}

start_database() {
  local port
  port=$(cat "$folder/mariadbd.port")
  mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db --user="$(id -un)" \
    --datadir="$folder/database" > "$folder/mariadbd.log"
  # one statement per line
  printf '%s\n' "create database slurm;" "grant all on slurm.* to slurm@localhost identified by '$(password)';" \
    > "$folder/database.sql"
  mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/database" --bind-address=127.0.0.1 --port="$port" \
    --socket="$folder/mariadbd.socket" --pid-file="$folder/mariadbd.pid" --init-file="$folder/database.sql" \
    >> "$folder/mariadbd.log" 2>&1 &
  wait_until 60 test -S "$folder/mariadbd.socket"
  slurmdbd
  wait_until 60 grep -qs "slurmdbd version .* started" "$folder/slurmdbd.log"
  sacctmgr -i -Q add cluster test
  sacctmgr -i -Q add account lab
  sacctmgr -i -Q add user "$(id -un)" account=lab
}

all_idle() { [[ $(sinfo -h -p main -o %T 2> /dev/null) == idle ]]; }

start() {
  local accounting=${1-} missing=() command ports node
  for command in munged slurmctld slurmd sbatch ${accounting:+slurmdbd mariadbd my_print_defaults}; do
    command -v "$command" > /dev/null || missing+=("$command")
  done
  if ((${#missing[@]})); then
    echo "no ${missing[*]}: install SLURM (Debian: apt-get install munge slurmctld slurmd slurm-client;" \
      "for accounting slurmdbd mariadb-server-core mariadb-client-core)" >&2
    exit 3
  fi
  if pid_of slurmctld > /dev/null; then
    echo "$folder: runs already; cluster.sh stop $folder" >&2
    exit 1
  fi
  rm -rf "$folder"/{state,spool,database,*.log}
  # ports that nothing listens on
  ports=($(python3 -c '
import socket
probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
print(*(probe.getsockname()[1] for probe in probes))'))
  configure "${ports[@]}"
  trap 'echo "SLURM did not start:" >&2; tail -n 5 "$folder"/*.log >&2; stop' ERR
  munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --num-threads=2 \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
  if [[ $accounting ]]; then start_database; fi
  slurmctld -c
  for node in "${NODES[@]}"; do up "$node"; done
  wait_until 30 all_idle
  trap - ERR
  echo "SLURM is up; source $folder/env.sh"
}

kill_node() { # the daemons of a node and of its jobs hold its log open; what the jobs started descends from them
  local found all
  # some processes end while they are looked at: find fails then
  found=$({ find /proc/[0-9]*/fd -lname "$folder/$1.log" 2> /dev/null || true; } | cut -d/ -f3 | sort -u)
  all=$found
  while [[ $found ]]; do
    found=$(ps -o pid= --ppid "$(xargs <<< "$found")" || true)
    all+=" $found"
  done
  kill -9 $all 2> /dev/null || true
}

no_jobs() { [[ -z $(squeue -h 2> /dev/null) ]]; }
gone() { [[ -z $(pid_of "$1") ]]; }

stop() {
  local daemon pid
  if pid_of slurmctld > /dev/null; then
    scancel --user="$(id -un)" || true
    wait_until 15 no_jobs || true
  fi
  for daemon in "${NODES[@]}" slurmctld slurmdbd mariadbd munged; do
    if pid=$(pid_of "$daemon"); then
      kill "$pid"
      wait_until 20 gone "$daemon" || kill -9 "$pid"
    fi
  done
}

case $1 in
  start | stop | up) "$1" ${3+"$3"} ;;
  kill) kill_node "$3" ;;
  *) echo "$usage" >&2; exit 2 ;;
esac
