"""A real SLURM cluster on this one machine, in one folder: loopback only, no systemd, nothing under
/etc, fake GPUs.

    python -m tests.slurm.cluster up FOLDER      prints what to export
    python -m tests.slurm.cluster down FOLDER

It needs Debian's packages and installs nothing: apt-get install slurmctld slurmd slurm-client munge
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.limits import HANGS
from tests.slurm import accounting

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
CORES, MEMORY_MB, GPUS = 4, 16000, 2
# Comments give the reason where a setting is not obvious.
CONFIGURATION = """\
ClusterName=recompose
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/run/munge.sock
# Without these two the daemons listen on every interface.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd-%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd-%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# The only limit on memory without cgroups: looks every 2 s and kills what is over its request.
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# Start jobs at once; a busy cluster would wait some seconds and start several together.
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=1,bf_interval=1
# Nodes may be larger than this machine.
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=30
SlurmctldTimeout=30
# Seconds between SIGTERM and SIGKILL at the time limit; 30 is SLURM's own default.
KillWait=30
# Jobs of the partition `urgent` take the place of others, which are started again later.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
GresTypes=gpu
PartitionName=gpu Nodes=ALL Default=YES MaxTime=24:00:00 State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP
# Ten minutes are less than any job of ours asks for.
PartitionName=short Nodes=ALL MaxTime=00:10:00 State=UP
"""


@dataclass(frozen=True)
class Cluster:
    """The daemons that were started in a folder, by the process ids that they left there."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """This process's environment with the cluster in it, without a SLURM job that it may run
        inside.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SBATCH_"))
        }
        path = f"{self.folder}/bin:{kept.get('PATH', os.defpath)}:/usr/sbin:/sbin"
        return kept | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def run(self, *command: str, check: bool = True) -> str:
        """What a SLURM command prints."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=HANGS
        )
        assert done.returncode == 0 or not check, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def process(self, daemon: str) -> int:
        return int((self.folder / f"run/{daemon}.pid").read_text())

    def lives(self, daemon: str) -> bool:
        """Whether it runs: its process, and not another that has got its id."""
        try:
            return (
                daemon.split("-")[0]
                == Path(f"/proc/{self.process(daemon)}/comm").read_text().strip()
            )
        except (OSError, ValueError):
            return False

    def kill(self, daemon: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a daemon and wait until it has gone."""
        process = self.process(daemon)
        assert self.lives(daemon), f"process {process} is not {daemon}"
        os.kill(process, number)
        wait(lambda: not alive(process), f"{daemon} does not stop")

    def start_slurmctld(self) -> None:
        self.run("slurmctld")
        wait(
            lambda: "UP" in self.run("scontrol", "ping", check=False),
            "slurmctld does not answer",
        )

    def start_slurmd(self, node: str, begins: list[str] | None = None) -> None:
        """Start it, with the prefix of its command."""
        file = self.folder / f"run/slurmd-{node}.pid"
        file.unlink(missing_ok=True)
        self.run(*(begins or []), "slurmd", "-N", node)
        wait(
            lambda: file.exists() and file.read_text().strip(),
            f"slurmd of {node} does not start",
        )

    def shown(self, job: str) -> dict[str, str]:
        """What `scontrol show job` says of one job."""
        words = self.run("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def jobs(self) -> list[dict[str, str]]:
        """What it says of every job since the cluster was started, finished ones for MinJobAge (300
        s).
        """
        numbers = self.run("squeue", "--noheader", "--states=all", "--format=%i").split()
        return [self.shown(number) for number in sorted(numbers, key=int)]

    def down(self) -> None:
        """SIGKILL every daemon, by process id, and what is left of the jobs."""
        for file in self.folder.glob("run/*.pid"):
            if self.lives(file.stem):
                os.kill(self.process(file.stem), signal.SIGKILL)
        here = f"SLURM_CONF={self.folder / 'slurm.conf'}"
        for process, environment in environments().items():
            if "SLURM_JOB_ID" in str(environment) and (
                here in environment or str(self.folder) in str(environment)
            ):
                os.kill(process, signal.SIGKILL)


def environments() -> dict[int, list[str]]:
    """What each process was given at its start, `NAME=value`, as far as this user may see it."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            found[int(file.parent.name)] = file.read_bytes().decode(errors="replace").split("\0")
    return found


def missing(programs: Iterable[str] = PROGRAMS) -> list[str]:
    """The programs that are not here."""
    return [
        name
        for name in programs
        if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    ]


def alive(process: int) -> bool:
    """Whether a process runs; one that has ended but was not yet waited for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait(until, what: str, seconds: float = HANGS) -> None:
    """Wait until a function returns something true. `seconds`: less where it must be soon."""
    deadline = time.monotonic() + seconds
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} ({seconds:.0f} s)")
        time.sleep(0.1)


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that no process listens on."""
    # Tests in other processes draw too, and hypothesis gives all of them one state of `random`.
    for first in random.SystemRandom().sample(range(20000, 30000, count), 100):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise OSError("no free ports between 20000 and 30000")


def up(
    folder: Path,
    nodes: int = 2,
    cores: int = CORES,
    begins: list[str] | None = None,
    accounts: bool = False,
) -> Cluster:
    """Start a cluster in an empty folder, every slurmd with the prefix of its command; `accounts`:
    with slurmdbd.

    The folder's path must be short (a Unix socket's has 107 bytes) and its parents open to others,
    or munged fails.
    """
    for name in ("munge", "state", "spool", "log", "run", "dev"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "munge").chmod(0o700)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    host, port = socket.gethostname().split(".")[0], free_ports(nodes + 3)
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    lines, gpus = [CONFIGURATION.format(host=host, user=user, folder=folder, port=port)], []
    for index in range(1, nodes + 1):
        for gpu in range(GPUS):
            (folder / f"dev/n{index}-gpu{gpu}").symlink_to("/dev/null")
        # Without File= the node is refused for having fewer GPUs than its configuration says.
        gpus.append(
            f"NodeName=n{index} Name=gpu Type=fake File={folder}/dev/n{index}-gpu[0-{GPUS - 1}]\n"
        )
        lines.append(
            f"NodeName=n{index} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + index} CPUs={cores}"
            f" RealMemory={MEMORY_MB} Gres=gpu:fake:{GPUS} State=UNKNOWN\n"
        )
    if accounts:
        storage = accounting.CONFIGURATION.format(folder=folder, port=port + nodes + 1)
        lines[0] = lines[0].replace("AccountingStorageType=accounting_storage/none\n", storage)
    # The executor takes SLURM_CONF from its jobs: on a real cluster srun finds its configuration
    # without it.
    (folder / "bin").mkdir()
    srun = shutil.which("srun", path=f"{os.environ['PATH']}:/usr/bin")
    (folder / "bin/srun").write_text(
        f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {srun} "$@"\n'
    )
    (folder / "bin/srun").chmod(0o755)
    (folder / "slurm.conf").write_text("".join(lines))
    (folder / "gres.conf").write_text("".join(gpus))
    cluster = Cluster(folder)
    munge = [
        f"--key-file={key}",
        f"--seed-file={folder}/munge/seed",
        f"--socket={folder}/run/munge.sock",
    ]
    logs = [
        f"--pid-file={folder}/run/munged.pid",
        f"--log-file={folder}/log/munged.log",
        "--num-threads=2",
    ]
    try:
        cluster.run("munged", *munge, *logs)
        if accounts:
            accounting.start(cluster, host, user, port + nodes + 1)
        cluster.start_slurmctld()
        for index in range(1, nodes + 1):
            cluster.start_slurmd(f"n{index}", begins)
        wait(
            lambda: (
                cluster.run("sinfo", "-hN", "-p", "gpu", "-o", "%T").split() == ["idle"] * nodes
            ),
            "no nodes",
        )
    except (AssertionError, TimeoutError) as error:
        cluster.down()
        logs = "\n".join(
            f"{file}:\n{file.read_text()[-2000:]}" for file in sorted((folder / "log").iterdir())
        )
        raise RuntimeError(f"the cluster did not start: {error}\n{logs}") from error
    return cluster


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("up", "down"):
        sys.exit(__doc__)
    target = Path(sys.argv[2]).resolve()
    if sys.argv[1] == "down":
        Cluster(target).down()
    elif lacking := missing():
        sys.exit(
            f"error: not installed: {', '.join(lacking)}; apt-get install slurmctld slurmd slurm-client munge"
        )
    else:
        up(target)
        print(f"export SLURM_CONF={target}/slurm.conf PATH={target}/bin:$PATH")
