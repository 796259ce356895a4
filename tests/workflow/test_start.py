"""What ./reproduce refuses in one line before Snakemake begins."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.disks import mounted
from workflow_scripts.errors import UserError
from workflow_scripts.start import check, parsed, read_own_profile, read_profile

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(ROOT / "config.yaml", tmp_path)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "scale"], "--config scale: not KEY=VALUE"),
        (["--config", "data.mirror=/folder"], "in 'data={mirror: /folder}'"),
        (["--config", "scale=demo", "results/demo/claims.csv"], "--config results/demo/claims.csv: not KEY=VALUE"),
        (["--config", "scale=demo", "-n", "-C", "demo"], "--config demo: not"),
        (["--configfile", "mine.yaml"], "mine.yaml does not exist"),
    ],
)
def test_words_that_snakemake_cannot_read(folder: Path, arguments: list[str], message: str):
    with pytest.raises(UserError) as error:
        check(parsed(arguments), makes=True)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_words_that_it_can_read(folder: Path):
    check(
        parsed(["-n", "--config", "scale=small", "data={mirror: /folder}", "--", "results/demo/claims.csv"]),
        makes=False,
    )
    check(parsed(["results/demo/claims.csv", "--config", "papers=[carma]", "--cores", "2"]), makes=True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"scale: demo\n  extra: true\n", "config.yaml:2: not valid YAML"),
        (b"scale: demo\nscale: small\n", "config.yaml:2: .*'scale' stands there twice"),
        (b"scale: d\xe9mo\n", "config.yaml: not UTF-8 text"),
        (b"", "config.yaml: it must hold keys"),
    ],
)
def test_a_config_yaml_that_cannot_be_read(folder: Path, content: bytes, message: str):
    (folder / "config.yaml").write_bytes(content)
    with pytest.raises(UserError, match=message):
        check(parsed(["-n"]), makes=False)


def test_folders_that_cannot_be_written(folder: Path):
    """A call that makes nothing needs no results/."""
    with mounted(folder / "results", 1):
        check(parsed([]), makes=True)
        subprocess.run(["mount", "-o", "remount,ro", folder / "results"], check=True)
        check(parsed(["-n"]), makes=False)
        with pytest.raises(UserError, match=rf"^{folder}/results: Read-only file system; .*$"):
            check(parsed([]), makes=True)


def test_a_profile_by_its_folder_its_name_or_its_file(folder: Path):
    for named in ("profiles/slurm-gpus", "slurm-gpus", "profiles/slurm-gpus/profile.yaml"):
        assert read_profile(named)["executor"] == "slurm"
    assert read_profile(None) == read_profile("none") == {}
    with pytest.raises(UserError, match=r"slurm-gpu: no profile\.yaml there; take profiles/slurm-gpus"):
        read_profile("profiles/slurm-gpu")


def test_the_users_own_profile_where_snakemake_looks_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """It may be what names the executor, when the call names no workflow profile."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home"))
    mine = folder / "home/snakemake/mycluster"
    mine.mkdir(parents=True)
    (mine / "config.yaml").write_text("executor: slurm\n")
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "mycluster")
    assert read_own_profile(parsed([]).profile) == {"executor": "slurm"}
    assert read_own_profile(parsed(["--profile", str(mine)]).profile) == {"executor": "slurm"}
    assert read_own_profile(parsed(["--profile", "none"]).profile) == read_own_profile("nowhere") == {}
