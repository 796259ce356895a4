"""Fetching from a server that fails in every way, and from a mirror folder."""

import argparse
import email.utils
import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.data.file_server import serving
from tests.data.hub_server import sha256
from tests.limits import HANGS
from workflow_scripts.commands import fetch as fetch_command
from workflow_scripts.commands.fetch import add_arguments, find_mirror, main
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.sources import declared, fetch
from workflow_scripts.data.sources.declared import Source, load_sources, verify_downloads
from workflow_scripts.data.sources.fetch import RetryPolicy, fetch_source, write_source_manifest

CONTENT = bytes(range(256)) * 4000
DIGEST = sha256(CONTENT)
QUICK = RetryPolicy(attempts=4, connection_attempts=2, first_wait=0.01, longest_wait=0.5)
PATIENT = RetryPolicy(attempts=2, first_wait=0.0, longest_wait=0.8)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def server():
    with serving() as running:
        running.files["/toy/file.bin"] = CONTENT
        running.source = toy(f"{running.url}/toy/file.bin")
        yield running


def toy(
    *urls: str, sha256: str | None = DIGEST, size: int | None = len(CONTENT), note: str = "a toy"
) -> Source:
    return Source("toy/file.bin", urls, sha256, size, "1", "MIT", True, "nobody", note)


def get(source: Source, folder: Path, mirror: Path | None = None) -> str:
    return fetch_source(source, folder, mirror, QUICK, lambda done, total: None)


def kept(folder: Path) -> dict[str, bytes]:
    """Everything under `folder` but the locks."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".locks" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_plain_download(server, tmp_path):
    told = []
    fetch_source(
        server.source, tmp_path, None, QUICK, lambda done, total: told.append((done, total))
    )
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        (
            {"faults": [("drop", 100_000), ("drop", 200_000)]},
            [None, "bytes=100000-", "bytes=300000-"],
        ),
        ({"faults": [("drop", 100_000)], "ranges": False}, [None, "bytes=100000-"]),
        ({"faults": [("drop", 1000)] * 20}, [None, *(f"bytes={1000 * n}-" for n in range(1, 21))]),
        ({"faults": [("short", 5000)]}, [None, "bytes=5000-"]),
        *(
            ({"faults": [("status", status, {})] * 2}, [None] * 3)
            for status in (429, 500, 502, 503, 504)
        ),
        ({"faults": [("redirect", "/elsewhere"), ("redirect", "/toy/file.bin")]}, [None] * 3),
    ],
)
def test_passing_faults_are_overcome(server, tmp_path, changes, asked):
    """A dropped connection is resumed, unless the server ignores Range, and as often as bytes came;
    so is a body that ends without a length.
    """
    for name, value in changes.items():
        setattr(server, name, value)
    get(server.source, tmp_path)
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}
    assert [wanted for _, wanted, _ in server.requests] == asked


def test_what_is_there_and_right_costs_no_request(server, tmp_path):
    get(server.source, tmp_path)
    assert get(server.source, tmp_path) == "already there"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "n", "policy", "least", "most"),
    [
        ({}, 3, RetryPolicy(attempts=4, first_wait=0.1, longest_wait=0.3), 0.1 + 0.2 + 0.3, 60),
        ({"Retry-After": "1"}, 1, PATIENT, 0.7, 5),
        ({"Retry-After": None}, 1, PATIENT, 0.7, 5),
    ],
)
def test_waits_double_or_are_those_that_the_server_asks_for(
    server, tmp_path, headers, n, policy, least, most
):
    dated = {
        name: value or email.utils.formatdate(time.time() + 2, usegmt=True)
        for name, value in headers.items()
    }
    server.faults = [("status", 503, dated)] * n
    started = time.monotonic()
    fetch_source(server.source, tmp_path, None, policy, lambda done, total: None)
    assert least <= time.monotonic() - started < most


@pytest.mark.parametrize(
    ("faults", "message", "requests"),
    [
        (
            [("status", 503, {})] * 50,
            "is missing: tried .*: HTTP status 503, 4 times in a row; get it by",
            4,
        ),
        *(
            ([("status", status, {})], f"HTTP status {status}", 1)
            for status in (401, 403, 404, 410)
        ),
        ([("redirect", "file:///etc/passwd")], "redirects from http to file: not followed", 1),
        (
            [("redirect", "ftp://127.0.0.1/file?token=secret")],
            "redirects from http to ftp: not followed",
            1,
        ),
        ([("redirect", "data:text/plain,x")], "redirects from http to data: not followed", 1),
        ([("redirect", "/toy/file.bin")] * 50, "redirect", 6),
    ],
)
def test_a_refusal_is_final_and_the_number_of_trials_is_limited(
    server, tmp_path, faults, message, requests
):
    server.faults = faults
    with pytest.raises(UserError, match=message) as caught:
        get(server.source, tmp_path)
    assert "secret" not in str(caught.value)
    assert len(server.requests) == requests
    assert kept(tmp_path) == {}


def test_the_next_url_is_tried(server, tmp_path):
    source = toy(f"{server.url}/gone.bin", f"{server.url}/toy/file.bin")
    assert get(source, tmp_path).startswith(
        f"from {server.url}/toy/file.bin (after {server.url}/gone.bin: HTTP status 404"
    )
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}


@pytest.mark.parametrize(
    ("content", "faults", "changes", "message"),
    [
        (
            CONTENT[::-1],
            [],
            {},
            f"wrong sha256: expected {DIGEST}, actual {sha256(CONTENT[::-1])}, nothing was kept",
        ),
        (
            CONTENT + b"more",
            [],
            {},
            f"wrong size: expected {len(CONTENT)} bytes, the server offers {len(CONTENT) + 4}",
        ),
        (
            CONTENT + b"more",
            [("short", len(CONTENT) + 4)],
            {},
            f"expected {len(CONTENT)} bytes, the server sends more",
        ),
        (b"<html>Please log in</html>", [], {}, "wrong size"),
        (b"<html>Please log in</html>", [], {"bytes": None}, "wrong sha256"),
    ],
)
def test_a_wrong_file_is_named_and_not_kept(server, tmp_path, content, faults, changes, message):
    server.files["/toy/file.bin"], server.faults = content, faults
    with pytest.raises(UserError, match=message) as caught:
        get(replace(server.source, **changes), tmp_path)
    assert server.source.urls[0] in str(caught.value) and "\n" not in str(caught.value)
    assert kept(tmp_path) == {}


def test_a_wrong_file_in_place_stays_until_the_right_one_is_here(server, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/file.bin").write_bytes(b"half of it")
    with pytest.raises(UserError, match="is missing"):
        get(toy(), tmp_path)
    assert kept(tmp_path) == {"toy/file.bin": b"half of it"}
    get(server.source, tmp_path)
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}


@pytest.mark.parametrize(
    "part", [CONTENT[:70_000], *(b"x" * size for size in (70_000, len(CONTENT), len(CONTENT) + 9))]
)
def test_half_a_file_of_an_earlier_call_is_completed_or_thrown_away(server, tmp_path, part):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/file.bin.part").write_bytes(part)
    get(server.source, tmp_path)
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}
    assert part[:1] == b"x" or [asked for _, asked, _ in server.requests] == ["bytes=70000-"]


@pytest.mark.quick_faults
def test_a_whole_other_file_does_not_cost_what_was_kept(server, tmp_path):
    """A page that asks for a password in place of the file; then the file is there again."""
    (tmp_path / "toy").mkdir()
    part = tmp_path / "toy/file.bin.part"
    part.write_bytes(CONTENT[:70_000])
    server.files["/toy/file.bin"] = b"log in"
    server.ranges = False
    with pytest.raises(UserError, match=r"wrong size: expected .* bytes, the server offers 6"):
        get(server.source, tmp_path)
    assert kept(tmp_path) == {"toy/file.bin.part": CONTENT[:70_000]}


@pytest.mark.quick_faults
def test_a_wrong_file_in_the_mirror_does_not_cost_what_was_kept(server, tmp_path):
    for folder in ("downloads/toy", "mirror/toy"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "downloads/toy/file.bin.part").write_bytes(CONTENT[:70_000])
    (tmp_path / "mirror/toy/file.bin").write_bytes(b"not this")
    get(server.source, tmp_path / "downloads", tmp_path / "mirror")
    assert kept(tmp_path / "downloads") == {"toy/file.bin": CONTENT}
    assert [asked for _, asked, _ in server.requests] == ["bytes=70000-"]


@pytest.mark.quick_faults
def test_a_partial_download_of_one_packing_is_not_continued_with_another(server, tmp_path):
    other = CONTENT[::-1]
    server.files["/other.bin"] = other
    packing = replace(toy(f"{server.url}/other.bin"), sha256=sha256(other))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy/file.bin.part").write_bytes(CONTENT[:70_000])
    gone = replace(server.source, urls=(f"{server.url}/gone.bin",), packings=(packing,))
    get(gone, tmp_path)
    assert [asked for path, asked, _ in server.requests if path == "/other.bin"] == [None]
    assert kept(tmp_path) == {"toy/file.bin": other}


def test_a_file_of_unknown_size_may_not_fill_the_disk(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fetch, "MOST_BYTES", len(CONTENT) - 1)
    with pytest.raises(UserError, match=f"expected at most {len(CONTENT) - 1}, the server offers"):
        get(replace(server.source, sha256=None, bytes=None), tmp_path)
    assert kept(tmp_path) == {}
    # A server that does not say how much is to come.
    server.faults = [("short", len(CONTENT))]
    with pytest.raises(UserError, match=f"expected at most {len(CONTENT) - 1}, "):
        get(replace(server.source, sha256=None, bytes=None), tmp_path)
    assert kept(tmp_path) == {}


def test_a_file_without_url(tmp_path):
    with pytest.raises(
        UserError,
        match=r"no mirror is set, and it has no URL; get it by other means \(made from b.zip\)",
    ):
        get(toy(note="made from b.zip"), tmp_path)


def test_another_packing_is_as_good(server, tmp_path):
    other = CONTENT[1000:]
    digest = sha256(other)
    server.files["/other.bin"] = other
    source = replace(
        toy(), packings=(replace(toy(f"{server.url}/other.bin"), sha256=digest, bytes=len(other)),)
    )
    assert get(source, tmp_path / "a").startswith(f"from {server.url}/other.bin")
    assert kept(tmp_path / "a") == {"toy/file.bin": other}
    assert get(source, tmp_path / "a") == "already there"
    assert get(source, tmp_path / "b", tmp_path / "a").startswith(f"from {tmp_path}/a/toy/file.bin")
    server.files["/other.bin"] = other[::-1]
    with pytest.raises(UserError, match=f"expected {digest}, actual .*nothing was kept"):
        get(source, tmp_path / "c")
    assert kept(tmp_path / "c") == {}


def test_the_mirror_comes_first(server, tmp_path):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/file.bin").write_bytes(CONTENT)
    get(server.source, tmp_path / "downloads", tmp_path / "mirror")
    assert kept(tmp_path / "downloads") == {"toy/file.bin": CONTENT}
    assert server.requests == []


@pytest.mark.quick_faults
def test_a_mirror_that_changes_during_the_copy_gives_the_whole_file_or_none(tmp_path):
    file, contents = tmp_path / "mirror/toy/file.bin", (CONTENT * 8, CONTENT[::-1] * 8)
    file.parent.mkdir(parents=True)
    file.write_bytes(contents[0])
    source = toy(sha256=sha256(contents[0]), size=len(contents[0]))
    done = threading.Event()

    def change() -> None:
        with open(file, "r+b") as stream:
            while not done.is_set():
                for content in contents:
                    stream.seek(0)
                    stream.write(content)

    thread = threading.Thread(target=change)
    thread.start()
    refused = 0
    for trial in range(20):
        try:
            get(source, tmp_path / f"downloads-{trial}", tmp_path / "mirror")
        except UserError as error:
            assert "has the wrong sha256" in str(error)
            refused += 1
        found = kept(tmp_path / f"downloads-{trial}")
        assert found in ({}, {"toy/file.bin": contents[0]})
    done.set()
    thread.join()
    assert refused


@pytest.mark.parametrize("wrong", [b"not this", CONTENT[::-1]])
def test_a_wrong_or_missing_file_in_the_mirror_is_passed_over(server, tmp_path, wrong):
    (tmp_path / "mirror/toy").mkdir(parents=True)
    assert "no such file" in get(server.source, tmp_path / "first", tmp_path / "mirror")
    (tmp_path / "mirror/toy/file.bin").write_bytes(wrong)
    assert "wrong s" in get(server.source, tmp_path / "second", tmp_path / "mirror")
    assert kept(tmp_path / "first") == kept(tmp_path / "second") == {"toy/file.bin": CONTENT}
    with pytest.raises(
        UserError, match=rf"{tmp_path}/mirror/toy/file.bin has the wrong s.*: expected .*, actual "
    ):
        get(toy(), tmp_path / "third", tmp_path / "mirror")
    assert kept(tmp_path / "third") == {}


@pytest.mark.quick_faults
def test_an_unpinned_file_is_trusted_at_first_and_then_compared(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, downloads = replace(server.source, sha256=None, bytes=None), tmp_path / "downloads"
    assert "unpinned (a toy): compared with trusted.csv" in get(source, downloads)
    head, line = (tmp_path / "trusted.csv").read_text().splitlines()
    assert head == "source,sha256,bytes,date"
    assert re.fullmatch(rf"toy/file\.bin,{DIGEST},{len(CONTENT)},\d{{4}}-\d\d-\d\d", line)
    assert kept(downloads) == {"toy/file.bin": CONTENT}
    server.files["/toy/file.bin"] = b"changed upstream"
    for folder in (downloads, tmp_path / "of a colleague who has the file trusted.csv"):
        (folder / "toy/file.bin").unlink(missing_ok=True)
        with pytest.raises(
            UserError,
            match=rf"wrong sha256: expected {DIGEST} \(trusted\.csv; delete its line .*\), actual",
        ):
            get(source, folder)
        assert kept(folder) == {}
    (downloads / "toy/file.bin").write_bytes(b"changed here")
    with pytest.raises(
        UserError, match=r"delete its line there .*; if the file is wrong, delete it"
    ):
        get(source, downloads)
    assert kept(downloads) == {"toy/file.bin": b"changed here"}
    assert (tmp_path / "trusted.csv").read_text().splitlines() == [head, line]


def test_half_a_copy_of_a_killed_process_is_deleted_wherever_the_file_comes_from_next(
    server, tmp_path
):
    half = tmp_path / "toy/file.bin.copy"
    half.parent.mkdir()
    half.write_bytes(CONTENT[:1000])
    get(server.source, tmp_path)
    assert kept(tmp_path) == {"toy/file.bin": CONTENT}


def test_an_empty_file_is_never_trusted(server, tmp_path, monkeypatch):
    """What a full disk or a proxy leaves; nothing is known of the right file."""
    monkeypatch.chdir(tmp_path)
    server.files["/toy/file.bin"] = b""
    with pytest.raises(UserError, match=r"toy/file\.bin is empty, nothing was kept"):
        get(replace(server.source, sha256=None, bytes=None), tmp_path / "downloads")
    assert kept(tmp_path) == {}


def test_a_declared_packing_of_an_unpinned_file_is_not_what_it_is_compared_with(
    server, tmp_path, monkeypatch
):
    """The declared one comes first here; later the file itself can be had, and is trusted then."""
    monkeypatch.chdir(tmp_path)
    other = CONTENT[1000:]
    server.files["/other.bin"] = other
    packing = replace(toy(f"{server.url}/other.bin"), sha256=sha256(other), bytes=len(other))
    source = replace(toy(), sha256=None, bytes=None, packings=(packing,))
    monkeypatch.setattr(declared, "load_sources", lambda: {source.name: source})
    assert "unpinned" not in get(source, tmp_path / "downloads")
    assert get(source, tmp_path / "downloads") == "already there"
    assert not (tmp_path / "trusted.csv").exists()
    assert verify_downloads([source.name], tmp_path / "downloads")[1][source.name] == sha256(other)
    (tmp_path / "downloads/toy/file.bin").unlink()
    source = replace(source, urls=(f"{server.url}/toy/file.bin",))
    assert "unpinned (a toy)" in get(source, tmp_path / "downloads")
    assert DIGEST in (tmp_path / "trusted.csv").read_text()


@pytest.mark.parametrize(
    "damage", ["<<<<<<< HEAD", f"toy/a,{'0' * 63},1,2026-01-01", f"toy/file.bin,{DIGEST},1,1"]
)
def test_a_damaged_list_of_trusted_files_is_refused_and_not_passed_over(
    server, tmp_path, monkeypatch, damage
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trusted.csv").write_text(
        f"source,sha256,bytes,date\ntoy/file.bin,{DIGEST},1,1\n{damage}\n"
    )
    with pytest.raises(
        UserError, match=r"^trusted\.csv:3: (expected one line per source|more or fewer cells)"
    ):
        get(replace(server.source, sha256=None, bytes=None), tmp_path / "downloads")


def test_a_file_that_nothing_vouches_for_is_not_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "downloads/bert").mkdir(parents=True)
    (tmp_path / "downloads/bert/tokenizer.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"neither in sources\.yaml nor in trusted\.csv; record it with: .* fetch"
    ):
        verify_downloads(["bert/tokenizer.json"], Path("downloads"))


@pytest.mark.quick_faults
def test_parallel_fetches_lose_no_trusted_file(server, tmp_path):
    names = [f"toy/{number}.bin" for number in range(4)]
    server.files |= {f"/{name}": name.encode() for name in names}
    started = [start(f"{server.url}/{name}", tmp_path, name, "") for name in reversed(names)]
    assert all("unpinned" in process.communicate(timeout=HANGS)[0] for process in started)
    found = [
        line.split(",")[:2] for line in (tmp_path / "trusted.csv").read_text().splitlines()[1:]
    ]
    assert found == [[name, sha256(name.encode())] for name in names]


def test_halves_of_an_unpinned_file_are_joined_only_under_one_strong_etag(
    server, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = replace(server.source, sha256=None, bytes=None)
    for etag, folder, asked in (
        ('"1"', "strong", [(None, None), ("bytes=5000-", '"1"')]),
        ('W/"1"', "weak", [(None, None), (None, None)]),
        ("", "none", [(None, None), (None, None)]),
    ):
        server.etag, server.faults, server.requests = etag, [("drop", 5000)], []
        get(source, tmp_path / folder)
        assert kept(tmp_path / folder)["toy/file.bin"] == CONTENT
        assert [(wanted, condition) for _, wanted, condition in server.requests] == asked


FETCH = """
import sys
from pathlib import Path
from workflow_scripts.data.sources.fetch import RetryPolicy
from workflow_scripts.data.sources.fetch import fetch_source
from workflow_scripts.data.sources.declared import Source
url, folder, name, digest, size = sys.argv[1:]
source = Source(name, (url,), digest or None, int(size) or None, "1", "MIT", True, "no citation", "a toy")
print(fetch_source(source, Path(folder), None, RetryPolicy(), lambda done, total: None))
"""


def start(
    url: str, folder: Path, name: str = "toy/file.bin", digest: str = DIGEST
) -> subprocess.Popen:
    command = [
        sys.executable,
        "-c",
        FETCH,
        url,
        str(folder),
        name,
        digest,
        str(len(CONTENT) if digest else 0),
    ]
    importable = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=importable, stdout=subprocess.PIPE, text=True)


@pytest.mark.quick_faults
def test_two_processes_do_not_fetch_one_file_twice(server, tmp_path):
    server.seconds_per_request = 1.5
    processes = [start(f"{server.url}/toy/file.bin", tmp_path) for _ in range(2)]
    told = sorted(
        process.communicate(timeout=HANGS)[0].split(" ")[0].strip() for process in processes
    )
    assert told == ["already", "from"]
    assert len(server.requests) == 1


def command(*words: str, **environment: str) -> subprocess.CompletedProcess:
    """`fetch` as it is typed, with no way to the network."""
    blocked = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    inherited = {name: value for name, value in os.environ.items() if name != "RECOMPOSE_MIRROR"}
    return subprocess.run(
        [sys.executable, "-m", "workflow_scripts", "fetch", *words],
        cwd=ROOT,
        env=inherited | blocked | environment,
        capture_output=True,
        text=True,
    )


def test_the_command_without_network_says_what_to_do_in_one_line(tmp_path):
    done = command("scan/LICENSE", "--downloads", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(
        "error: scan/LICENSE is missing: tried https://raw.githubusercontent.com/"
    )
    assert (
        f"put it at {tmp_path}/scan/LICENSE, or at scan/LICENSE in a mirror folder" in done.stderr
    )


def test_the_command_takes_what_it_can(tmp_path, mirror):
    """The archive is not in the mirror, its members are."""
    done = command("stsb", "--downloads", str(tmp_path / "got"), RECOMPOSE_MIRROR=str(mirror))
    assert done.returncode == 1
    assert sorted(name for name in kept(tmp_path / "got") if not name.endswith(".json")) == [
        f"stsb/{name}" for name in ("LICENSE.txt", "sts-dev.csv", "sts-test.csv", "sts-train.csv")
    ]
    assert (
        done.stderr.splitlines()[-1]
        == "error: 1 of 5 files could not be downloaded: stsb/Stsbenchmark.tar.gz"
    )


def test_all_files_are_fetched(tmp_path, monkeypatch):
    sources = {name: replace(toy(), name=name) for name in ("toy/file.bin", "other/file.bin")}
    monkeypatch.setattr(fetch_command, "load_sources", lambda: sources)
    for name in sources:
        (tmp_path / "mirror" / name).parent.mkdir(parents=True)
        (tmp_path / "mirror" / name).write_bytes(CONTENT)
    folders = ("--mirror", str(tmp_path / "mirror"), "--downloads", str(tmp_path / "got"))
    main(parsed("--all", *folders))
    assert sources.keys() <= kept(tmp_path / "got").keys()


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name datasets or files, or pass --all"),
        (("scan", "--all"), "name datasets or files, or pass --all"),
        (("scna",), "no source 'scna' in sources.yaml; did you mean 'scan'?"),
        (("scan", "--mirror", "/nowhere"), "the mirror /nowhere is not a folder"),
    ],
)
def test_wrong_arguments(words, message):
    with pytest.raises(UserError) as caught:
        main(parsed(*words))
    assert message in str(caught.value)


def test_the_mirror_is_the_argument_or_the_environments_or_the_configurations(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(ROOT)
    for name in ("argument", "environment"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("RECOMPOSE_MIRROR", str(tmp_path / "environment"))
    assert find_mirror(tmp_path / "argument") == tmp_path / "argument"
    assert find_mirror(None) == tmp_path / "environment"
    monkeypatch.delenv("RECOMPOSE_MIRROR")
    configured = yaml.safe_load((ROOT / "config.yaml").read_text())["data"]["mirror"]
    assert find_mirror(None) == (Path(configured) if configured else None)


def test_the_list_names_every_file_with_its_terms(capsys):
    main(parsed("--list", "scan", "bert/tokenizer.json"))
    rows = {line.split("\t")[0]: line.split("\t") for line in capsys.readouterr().out.splitlines()}
    assert len(rows) == 6
    assert rows["scan/LICENSE"][1:5] == [
        "1532 bytes",
        "pinned",
        "c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f",
        "BSD",
    ]
    assert rows["bert/tokenizer.json"][1:3] == ["unknown bytes", "unpinned"]
    main(parsed("--list"))
    rows = {line.split("\t")[0]: line.split("\t") for line in capsys.readouterr().out.splitlines()}
    assert rows["hf:openai-community/gpt2"][1:3] == [
        "model",
        "607a30d783dfa663caf39e06633721c8d4cfcd7e",
    ]
    assert set(rows) > set(load_sources())


def test_the_manifest_changes_with_the_file_and_at_no_other_time(tmp_path):
    source, file = toy("https://example.org/file.bin"), tmp_path / "file.bin"
    contents = []
    for content in (CONTENT, CONTENT, CONTENT + b"more"):
        file.write_bytes(content)
        write_source_manifest(source, file)
        contents.append((tmp_path / "file.bin.json").read_text())
    assert contents[0] == contents[1] != contents[2]
    found = json.loads(contents[0])
    assert (found["sha256"], found["bytes"]) == (DIGEST, len(CONTENT))


def test_no_source_file_has_the_name_of_anothers_manifest():
    names = load_sources().keys()
    assert not {f"{name}.json" for name in names} & names
