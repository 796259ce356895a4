"""The resources for synonyms, read once: a few words in the formats of the real archives, and the
real ones.
"""

from pathlib import Path

import pytest

from tests.interventions.small_lexicon import write_sources
from workflow_scripts.interventions.settings import CandidateSpec, Options
from workflow_scripts.interventions.synonym_resources import SynonymResources, load_resources


@pytest.fixture(scope="session")
def resources(tmp_path_factory: pytest.TempPathFactory) -> SynonymResources:
    return load_resources(write_sources(tmp_path_factory.mktemp("sources")), Options())


@pytest.fixture(scope="session")
def real(mirror: Path) -> SynonymResources:
    return load_resources(
        {name: mirror / name for name in CandidateSpec("test", Options()).sources}, Options()
    )
