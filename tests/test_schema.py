import json
from pathlib import Path

from workflow_scripts import schema

ROOT = Path(__file__).parents[1]


def test_json_schemas_are_in_step_with_the_models():
    for name, expected in schema.json_schemas().items():
        written = json.loads((ROOT / "catalogue/schemas" / name).read_text())
        assert written == json.loads(json.dumps(expected)), f"{name} is old; run python -m workflow_scripts.schema"
