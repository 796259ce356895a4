"""Summaries of runs on the pages."""

from workflow_scripts.common.files import write_json
from workflow_scripts.config.catalogue import Run
from workflow_scripts.reporting.pages.training_summary import describe_precision


def test_precision_is_said_and_that_it_differs(tmp_path):
    def made(variant: str, seed: int, precision: str) -> Run:
        run = Run("cogs", "lrf", variant, seed)
        (tmp_path / "runs" / str(run)).mkdir(parents=True)
        write_json(tmp_path / "runs" / str(run) / "run.json", {"spec": {"training": {"precision": precision}}})
        return run

    alike = [made("default", seed, "bf16") for seed in (1, 2)]
    assert describe_precision(alike, tmp_path) == ["Trained in bf16."]
    said = "Precision differs: cogs/lrf/default in bf16, cogs/lrf/plain in fp32."
    assert describe_precision([*alike, made("plain", 1, "fp32")], tmp_path) == [said]
    assert describe_precision([], tmp_path) == []
