"""A crate contains only the files that the configuration requests."""

from pathlib import Path

from workflow_scripts.common.result_folders import ScaleFolder
from workflow_scripts.config.loading import load_catalogue, load_config
from workflow_scripts.reporting.pages.crate import list_requested_files
from workflow_scripts.reporting.pages.verify import list_expected_results

ROOT = Path(__file__).parents[3]


def test_what_is_no_longer_asked_for_stays_out(tmp_path):
    catalogue = load_catalogue(ROOT)
    config = load_config({"scale": "demo", "papers": ["sq_transformer"]}, ROOT)
    results = ScaleFolder(tmp_path)
    expected = list_expected_results(catalogue, config, results)
    wanted = {
        *(file.relative_to(tmp_path).as_posix() for file in expected),
        "report.html",
        "analyses/sq_transformer/neighbours/words.csv",
    }
    wanted -= {"config.json"}  # what the results were made of
    old = {
        "data/idm/dataset.json",
        "candidates/idm/candidates.json",
        *(
            f"runs/cogs/transformer/default/seed-77/{name}"
            for name in ("run.json", "training.csv", "eval/scores.csv")
        ),
        "runs/idm/gpt2/ft/seed-1/interventions/scores.csv",
        "analyses/sq_transformer/renamed/analysis.json",
        "tables/carma/table1.csv",
        "figures/sq_transformer/renamed.svg",
    }
    for name in wanted | old:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    packed = {
        file.relative_to(tmp_path).as_posix()
        for file in list_requested_files(results, catalogue, config)
    }
    assert packed == wanted and "runs/cogs/transformer/default/seed-1/record.json" in packed
