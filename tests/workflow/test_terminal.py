"""What a person sees: the output of ./reproduce on a real (pseudo) terminal."""

import os
import pty
import re
import subprocess


def on_a_terminal(command: list[str], folder) -> str:
    """Everything that a command writes to a terminal of 100 columns."""
    ours, its = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=its, stderr=its, env=environment, close_fds=True
    )
    os.close(its)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        written += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return written.decode()


def test_jobs_are_counted_and_the_live_part_is_taken_away(project):
    targets = [f"results/demo/data/{task}/dataset.json" for task in ("scan-jump-x2", "cogs")]
    seen = on_a_terminal(["./reproduce", *targets], project.root)
    assert "\x1b[2K" in seen, "nothing was drawn over: there was no live part"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    lines = [line.strip() for line in plain.replace("\r", "\n").splitlines() if line.strip()]
    assert "2 jobs: 2 prepare" in lines
    assert [line[:12] for line in lines if line.startswith("✓")] == ["✓ 1/2 prepar", "✓ 2/2 prepar"]
    assert re.fullmatch(r"2 jobs done in \d:\d\d", lines[-1])
