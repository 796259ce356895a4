import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.config.test_checker import MISTAKES
from workflow_scripts.config.editor_schemas import make_schemas
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.reference import PAGE, START, make_reference
from workflow_scripts.config.schema import Config

ROOT = Path(__file__).parents[2]


def test_json_schemas_are_in_step_with_the_models():
    for name, expected in make_schemas(load_catalogue(ROOT)).items():
        written = json.loads((ROOT / "catalogue/schemas" / name).read_text())
        assert written == json.loads(json.dumps(expected)), (
            f"{name} is old; run `python -m workflow_scripts lint`"
        )


def test_the_page_of_the_configuration_is_in_step_with_the_models():
    page = (ROOT / PAGE).read_text()
    assert page.endswith(f"{START}\n{make_reference()}"), (
        f"{PAGE} is old; run `python -m workflow_scripts.config.reference`"
    )
    assert "| `dropout` | number ≥ 0 ≤ 0.99 | `0.3` |" in page  # a default and its limits
    assert "| `gated` | true or false | `true` | gated (" in page  # a comment of the code


@pytest.mark.parametrize("kind", ["analysis_plan", "claims", "displays", "experiments"])
def test_the_papers_files_agree_with_their_json_schema(kind):
    content = json.loads((ROOT / f"catalogue/schemas/{kind}.json").read_text())
    for file in sorted((ROOT / "papers").glob(f"*/{kind}.yaml")):
        # JSON has no dates: there they are text.
        jsonschema.validate(
            json.loads(json.dumps(yaml.safe_load(file.read_text()), default=str)), content
        )
        assert f"catalogue/schemas/{kind}.json" in file.read_text().splitlines()[0]


@pytest.mark.parametrize("kind", ["methods", "metrics", "scales", "tasks"])
def test_the_catalogue_agrees_with_its_json_schema(kind):
    content = json.loads((ROOT / f"catalogue/schemas/{kind}.json").read_text())
    for file in sorted(
        [*(ROOT / "catalogue").glob(f"{kind}.yaml"), *(ROOT / "catalogue" / kind).glob("*.yaml")]
    ):
        jsonschema.validate(yaml.safe_load(file.read_text()), content)
        assert f"schemas/{kind}.json" in file.read_text().splitlines()[0]


@pytest.mark.parametrize("group", MISTAKES)
def test_the_planted_mistakes_that_an_editor_underlines(group: str):
    """All but those for `lint` alone, which need more than one place; those of published.csv are
    for lint, too.
    """
    for it in (it for it in MISTAKES[group] if it.file.endswith(".yaml")):
        text = (ROOT / it.file).read_text().replace(it.right, it.wrong, 1)
        schema = (ROOT / it.file).parent / re.search(r"\$schema=(\S+)", text)[1]
        content = json.loads(json.dumps(yaml.safe_load(text), default=str))
        valid = jsonschema.Draft202012Validator(json.loads(schema.read_text())).is_valid(content)
        assert valid == (it.found_by == "lint"), f"{it.file}: {it.wrong}"


@pytest.mark.parametrize(("size", "expected"), [(0, 0), ("500MB", 5e8), ("1.5 TB", 1.5e12)])
def test_the_size_of_earlier_results(size: int | str, expected: float):
    assert Config(keep_earlier=size).earlier_bytes == expected
