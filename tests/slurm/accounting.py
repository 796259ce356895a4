"""SLURM's accounting for a cluster of the tests: MariaDB and slurmdbd on loopback, in the cluster's
own folder.

Debian: apt-get install --no-install-recommends slurmdbd mariadb-server
"""

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.limits import HANGS

if TYPE_CHECKING:
    from tests.slurm.cluster import Cluster

PROGRAMS = (
    "slurmdbd",
    "sacctmgr",
    "sacct",
    "mariadbd",
    "mariadb-install-db",
    "mariadb-admin",
    "mariadb",
)
ACCOUNT, QOS = "physics", "long"
# In the place of `accounting_storage/none`.
CONFIGURATION = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
# What asks the database does not read AuthInfo.
AccountingStoragePass={folder}/run/munge.sock
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
# Else an unknown account or QOS is taken without a word.
AccountingStorageEnforce=associations,qos,limits
"""
DAEMON = """\
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
CommunicationParameters=NoInAddrAny
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage_port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
DATABASE = """\
create database slurm_acct_db;
create user slurm@'127.0.0.1' identified by 'slurm';
grant all on slurm_acct_db.* to slurm@'127.0.0.1';
"""


def start(cluster: "Cluster", host: str, user: str, port: int) -> None:
    """Start the daemons, on `port` and the next one, and make an account and a QOS for the user."""
    from tests.slurm.cluster import wait

    folder = cluster.folder
    configuration = folder / "slurmdbd.conf"
    # slurmdbd refuses one that others may read: it holds a password
    configuration.touch(mode=0o600)
    configuration.write_text(
        DAEMON.format(host=host, user=user, folder=folder, port=port, storage_port=port + 1)
    )
    start_database(cluster, user, port + 1)
    cluster.run("slurmdbd")
    cluster_is_there = ("sacctmgr", "--noheader", "list", "cluster")
    wait(lambda: succeeds(cluster, *cluster_is_there), "slurmdbd does not answer")
    for what in (
        ("cluster", "recompose"),
        ("qos", QOS),
        ("account", ACCOUNT, "Cluster=recompose"),
        (
            "user",
            user,
            f"Account={ACCOUNT}",
            f"DefaultAccount={ACCOUNT}",
            f"QOS=normal,{QOS}",
            "AdminLevel=Admin",
        ),
    ):
        cluster.run("sacctmgr", "--immediate", "add", *what, check=False)  # root is there already
    cluster.run("sacctmgr", "--immediate", "modify", "user", user, "set", f"QOS=normal,{QOS}")
    users = cluster.run("sacctmgr", "-nP", "list", "assoc", "format=account,user,qos").split()
    assert f"{ACCOUNT}|{user}|{QOS},normal" in users, users


def start_database(cluster: "Cluster", user: str, port: int) -> None:
    """MariaDB in the cluster's folder, with an empty database for slurmdbd."""
    from tests.slurm.cluster import wait

    folder = cluster.folder
    data, client = (
        folder / "mysql",
        ("--no-defaults", "--user=root", f"--socket={folder}/run/mysql.sock"),
    )
    data.mkdir()
    made_by = ("--no-defaults", f"--user={user}", f"--datadir={data}", "--skip-name-resolve")
    cluster.run(
        "mariadb-install-db", *made_by, "--auth-root-authentication-method=normal", "--skip-test-db"
    )
    places = [f"--socket={folder}/run/mysql.sock", f"--pid-file={folder}/run/mariadbd.pid"]
    places += [
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--log-error={folder}/log/mariadbd.log",
    ]
    # slurmdbd advises larger ones than a test needs.
    small = [
        "--innodb-buffer-pool-size=64M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    subprocess.Popen(
        ["mariadbd", *made_by, *places, *small],
        env=cluster.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait(lambda: succeeds(cluster, "mariadb-admin", *client, "ping"), "MariaDB does not answer")
    cluster.run("mariadb", *client, "--execute", DATABASE)


def succeeds(cluster: "Cluster", *command: str) -> bool:
    done = subprocess.run(command, env=cluster.environment, capture_output=True, timeout=HANGS)
    return done.returncode == 0


def ended(cluster: "Cluster", project: Path) -> list[list[str]]:
    """State, account, QOS and comment of each job of a folder, as sacct itself says."""
    form = ("--parsable2", "--noheader", "--format=State,Account,QOS,Comment,WorkDir")
    lines = cluster.run("sacct", "-X", *form).splitlines()
    return [line.split("|")[:4] for line in lines if line.split("|")[4] == os.fspath(project)]
