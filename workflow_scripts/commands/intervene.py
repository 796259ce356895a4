"""Pool the words of a trained model's prompts (CAP), replace words by synonyms, and score the
answers.
"""

import argparse
from pathlib import Path

from workflow_scripts.commands.evaluate import (
    add_scoring_arguments,
    name_run,
    open_checkpoint,
    read_scored_run,
    read_scoring_settings,
    write_scoring_records,
)
from workflow_scripts.commands.inputs import add_state_arguments, find_state
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import check_replaceable, hash_file, write_atomically
from workflow_scripts.common.result_folders import (
    CandidateFolder,
    InterventionFolder,
    verify_checksum,
)
from workflow_scripts.evaluation.scores import write_scores
from workflow_scripts.interventions.settings import Intervention
from workflow_scripts.provenance.spec_fingerprints import fingerprint_intervention
from workflow_scripts.tasks.prompt.settings import get_match_rule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_scoring_arguments(parser, "folder for scores.csv and answers.parquet, one row per answer")
    add_state_arguments(parser)
    parser.add_argument(
        "--candidates", type=Path, required=True, metavar="DIR", help="folder that candidates wrote"
    )


def main(args: argparse.Namespace) -> None:
    """Write scores.csv, answers.parquet and intervention.json of one run.

    After a kill it continues with the answers that it saved.
    """
    scored = read_scored_run(args)
    spec = scored.spec
    settings_of_spec = scored.job_spec.intervention if scored.job_spec else None
    settings = read_scoring_settings(args, Intervention, settings_of_spec)
    if spec.kind != "prompt":
        raise UserError(
            f"{spec.run}: interventions need a task of kind prompt; {spec.task} is {spec.kind}"
        )
    check_replaceable(args.out, InterventionFolder(args.out).names)

    # torch takes more than a second to import, so wrong names are reported first.
    import pyarrow.parquet as pq

    from workflow_scripts.common.progress import Reporter
    from workflow_scripts.interventions.intervene import intervene
    from workflow_scripts.interventions.saved_answers import SavedAnswers
    from workflow_scripts.training.machine import choose_device, set_seed_and_threads

    device = choose_device(args.device)
    set_seed_and_threads(spec.seed, spec.torch_threads, device)
    match = get_match_rule(scored.job_spec.evaluation if scored.job_spec else None)
    candidates = CandidateFolder(args.candidates).words
    verify_checksum(candidates)
    fingerprint = fingerprint_intervention(settings, match, scored.shared_spec)
    with (
        open_checkpoint(args, scored, device) as (checkpoint, sha256),
        Reporter(str(spec.run), 0, args.progress, unit="prompts") as reporter,
    ):
        identity = {
            "fingerprint": str(fingerprint),
            "data_digest": scored.data_digest,
            "checkpoint_sha256": sha256,
            "candidates_sha256": hash_file(candidates),
            "device": device.type,
        }
        saved = SavedAnswers(find_state(args), identity, args.save_every)
        answers, scores = intervene(
            spec, checkpoint, args.data, settings, match, candidates, device, reporter, saved
        )
    scores = [name_run(score._replace(split=settings.split), spec) for score in scores]
    with write_atomically(args.out) as out:
        folder = InterventionFolder(out)
        out.mkdir()
        pq.write_table(answers, folder.answers, compression="zstd")
        write_scores(folder.scores, scores)
        write_scoring_records(
            folder,
            scored,
            fingerprint,
            device,
            sha256,
            saved.costs_before,
            candidates_sha256=identity["candidates_sha256"],
        )
    saved.remove()
