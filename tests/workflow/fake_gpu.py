"""Executables with the names of NVIDIA's tools, for machines without a GPU."""

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

GIB = 1024
# What a driver may print before its answer.
NOISE = "Warning: persistence mode is disabled on device 00000000:3B:00.0\n\x00\x1b[0m###, 1, 2\n"

# `-d` starts a daemon, a process that sleeps; commands come from stdin. Each call is a line of
# calls.txt.
MPS = """#!/bin/bash
pipe=${CUDA_MPS_PIPE_DIRECTORY:-__HERE__/nvidia-mps}
is_running() { [ -e "$pipe/daemon.pid" ] && kill -0 "$(cat "$pipe/daemon.pid")" 2>/dev/null; }
if [ "${1:-}" = -d ]; then
  echo "start $pipe $CUDA_VISIBLE_DEVICES" >>"__HERE__/calls.txt"
  __FAULT__
  mkdir -p "$pipe"
  setsid sleep 1000 & # with the stdout of its parent, as a careless daemon has it
  echo $! >"$pipe/daemon.pid"
  exit 0
fi
read -r command
echo "$command $pipe" >>"__HERE__/calls.txt"
is_running || { echo "Cannot find MPS control daemon process"; exit 1; }
[ "$command" != quit ] || { kill "$(cat "$pipe/daemon.pid")"; rm "$pipe/daemon.pid"; }
"""


@dataclass(frozen=True)
class FakeTools:
    """A folder of executables: put it first on PATH."""

    folder: Path

    def add(self, name: str, script: str) -> None:
        """Write an executable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / name
        file.write_text(script)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def add_smi(
        self, *free_gib: int, noise: str = "", code: int = 0, text: str | None = None
    ) -> None:
        """Write an nvidia-smi that lists a GPU for each size of its free memory, or prints `text`."""
        lines = [
            f"{index}, GPU-{index}a2b-{index}c3d, {GIB * free}"
            for index, free in enumerate(free_gib)
        ]
        answer = self.folder / "smi.txt"
        self.folder.mkdir(parents=True, exist_ok=True)
        answer.write_text(noise + "\n".join(lines) + "\n" if text is None else text)
        self.add("nvidia-smi", f"#!/bin/sh\ncat '{answer}'\nexit {code}\n")

    def add_mps(self, fault: str = ":") -> None:
        """Write an nvidia-cuda-mps-control, in which the commands `fault` run before the daemon
        starts.
        """
        script = MPS.replace("__HERE__", str(self.folder)).replace("__FAULT__", fault)
        self.add("nvidia-cuda-mps-control", script)

    def path(self) -> str:
        """Return PATH with the folder, and without NVIDIA's own tools."""
        others = []
        for folder in os.environ["PATH"].split(":"):
            if not shutil.which("nvidia-smi", path=folder):
                others.append(folder)
        return ":".join([str(self.folder), *others])

    def read_calls(self) -> list[str]:
        """Return what was asked of MPS, without its folders."""
        file = self.folder / "calls.txt"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def list_daemons(self) -> list[Path]:
        """Return the pid files of daemons that run."""
        return [*self.folder.rglob("daemon.pid")]
