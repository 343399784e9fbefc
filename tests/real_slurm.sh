#!/bin/bash
# A real Slurm of one node with accounting, for tests and for recording what its tools print.
#
#   tests/real_slurm.sh start FOLDER    everything it writes lies in FOLDER; takes about 15 s
#   export SLURM_CONF=FOLDER/slurm.conf
#   sbatch … ; sacct … ; scontrol show job …
#   tests/real_slurm.sh stop FOLDER
#
# Needs root and Debian's packages: slurmctld slurmd slurmdbd slurm-client munge mariadb-server.
# All daemons listen on loopback, at ports of their own, and are ended by their process ids.
set -euo pipefail

action=${1:?start or stop}
mkdir -p "${2:?a folder}"
folder=$(realpath "$2")
host=$(hostname -s)

stop() {
    local file pid
    SLURM_CONF="$folder/slurm.conf" timeout 10 scancel --partition=gpu 2>/dev/null && sleep 1 || true
    for file in slurmd/slurmd ctld/slurmctld ctld/slurmdbd mysql/mariadbd munge/munged; do
        pid=$(cat "$folder/$file.pid" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || continue
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
    done
}

wait_for() { # WHAT COMMAND...: until the command succeeds, at most 30 s
    local what=$1
    shift
    for _ in $(seq 60); do
        if timeout 10 "$@" >/dev/null 2>&1; then return; fi
        sleep 0.5
    done
    echo "$what did not come up; see the logs in $folder" >&2
    stop
    exit 1
}

if [ "$action" = stop ]; then
    stop
    exit
fi

chmod 755 "$folder"
mkdir -p "$folder"/{munge,mysql,ctld,slurmd}
chown munge "$folder/munge"
chown mysql "$folder/mysql"
chown slurm "$folder/ctld"
touch "$folder/cgroup.conf"

# munge: tickets between the daemons
dd if=/dev/urandom of="$folder/munge/munge.key" bs=128 count=1 status=none
chown munge "$folder/munge/munge.key"
chmod 400 "$folder/munge/munge.key"
chmod 711 "$folder/munge"
su -s /bin/bash munge -c "munged --key-file='$folder/munge/munge.key' --socket='$folder/munge/socket' \
    --pid-file='$folder/munge/munged.pid' --log-file='$folder/munge/munged.log' \
    --seed-file='$folder/munge/seed' --force"
wait_for munged test -S "$folder/munge/socket"

# mariadb: where slurmdbd keeps the accounts
mariadb-install-db --no-defaults --user=mysql --datadir="$folder/mysql" --skip-test-db >"$folder/mariadb-install.log" 2>&1
mariadbd --no-defaults --user=mysql --datadir="$folder/mysql" --socket="$folder/mysql/socket" \
    --pid-file="$folder/mysql/mariadbd.pid" --bind-address=127.0.0.1 --port=17816 --innodb-buffer-pool-size=64M \
    >"$folder/mariadbd.log" 2>&1 &
wait_for mariadbd mariadb --no-defaults --socket="$folder/mysql/socket" -e "select 1"
mariadb --no-defaults --socket="$folder/mysql/socket" -e "
    create database slurm; create user slurm@'%' identified by 'slurm'; drop user if exists ''@localhost;
    grant all on slurm.* to slurm@'%'"

cat >"$folder/slurmdbd.conf" <<END
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=localhost
DbdPort=17819
SlurmUser=slurm
PidFile=$folder/ctld/slurmdbd.pid
LogFile=$folder/ctld/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=17816
StoragePass=slurm
StorageUser=slurm
StorageLoc=slurm
END
chown slurm "$folder/slurmdbd.conf"
chmod 600 "$folder/slurmdbd.conf"

cat >"$folder/slurm.conf" <<END
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17817
SlurmdPort=17818
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CryptoType=crypto/munge
SlurmUser=slurm
StateSaveLocation=$folder/ctld
SlurmdSpoolDir=$folder/slurmd
SlurmctldPidFile=$folder/ctld/slurmctld.pid
SlurmdPidFile=$folder/slurmd/slurmd.pid
SlurmctldLogFile=$folder/ctld/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
KillWait=2
MinJobAge=300
SchedulerParameters=requeue_delay=1
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=17819
AccountingStoragePass=$folder/munge/socket
AccountingStorageTRES=gres/gpu
NodeName=node-a NodeHostname=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 Gres=gpu:4 State=UNKNOWN
PartitionName=gpu Nodes=node-a Default=YES MaxTime=60 OverSubscribe=FORCE:8 State=UP
END
# Slurm wants one device file for each GPU and opens none of them.
echo "NodeName=node-a Name=gpu File=/dev/tty[0-3]" >"$folder/gres.conf"

export SLURM_CONF="$folder/slurm.conf"
su -s /bin/bash slurm -c "SLURM_CONF='$SLURM_CONF' slurmdbd"
wait_for slurmdbd sacctmgr -n show cluster
su -s /bin/bash slurm -c "SLURM_CONF='$SLURM_CONF' slurmctld"
wait_for slurmctld scontrol ping
slurmd -N node-a
wait_for slurmd bash -c "sinfo -h -o %t | grep -q idle"
echo "SLURM_CONF=$SLURM_CONF"
