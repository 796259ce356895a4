# Shared by all rules: the configuration, and JOBS, whose methods return what jobs need.
# The parameter `fingerprint` changes if anything but an input file can change the result. Snakemake
# then reruns the job.

from workflow_scripts.workflow.snakemake_speed import stop_garbage_collection

stop_garbage_collection()  # before the imports, which make many objects

import atexit
from pathlib import Path

from workflow_scripts.common import result_folders
from workflow_scripts.common.files import format_canonical_json
from workflow_scripts.common.yaml_files import read_yaml_mapping
from workflow_scripts.config.overrides import merge_overrides
from workflow_scripts.config.schema import parse_config
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.resources import read_default_resources
from workflow_scripts.workflow.result_patterns import (
    ANALYSIS,
    CANDIDATES,
    CLAIM,
    DATA,
    EVALUATION,
    FIGURE,
    HUB_MODEL,
    INTERVENTIONS,
    RUN_NAME,
    SCALE,
    SEARCH,
    SOURCE,
    TABLE,
    TRAINING,
    VARIANT_NAME,
)
from workflow_scripts.workflow.scheduler_fix import limit_scheduler_timers
from workflow_scripts.workflow.snakemake_call import find_own_executor, find_own_targets
from workflow_scripts.workflow.spec_files import SpecFiles
from workflow_scripts.workflow.wildcards import ANY_NAMES

limit_scheduler_timers()


read_yaml_mapping("config.yaml")  # refuses a repeated key, of which Snakemake takes the last
# Snakemake gives the values of --config other types than YAML does.
OVERRIDES = workflow.config_settings.config_args or []
SETTINGS = merge_overrides(config, OVERRIDES)
# On a cluster each job starts Snakemake again. That one takes the spec files, and reads neither
# catalogue/ nor papers/.
IN_JOB = workflow.remote_exec
if IN_JOB:
    CONFIG = parse_config(SETTINGS)
    SPECS, PATTERNS = SpecFiles(), ANY_NAMES
else:
    from workflow_scripts.config.checker import check_files
    from workflow_scripts.config.loading import load_catalogue, load_config, name_place
    from workflow_scripts.config.requested import check_named_claims
    from workflow_scripts.workflow.patterns import match_catalogue
    from workflow_scripts.workflow.cost_groups import make_paper_group
    from workflow_scripts.workflow.job_order import set_priorities
    from workflow_scripts.workflow.job_specs import CatalogueSpecs, write_spec_files
    from workflow_scripts.workflow.earlier_results import EarlierResults, restore_earlier
    from workflow_scripts.workflow.moved_numbers import store_numbers
    from workflow_scripts.workflow.stale_work import CallWork
    from workflow_scripts.workflow.targets import Targets
    from workflow_scripts.workflow.work_question import list_dag_jobs, list_requests, print_dry_run, print_work

    CONFIG = load_config(SETTINGS, overrides=OVERRIDES)
    if workflow.is_main_process:
        check_files(Path(".snakemake/checked"))
    CATALOGUE = load_catalogue()
    check_named_claims(CATALOGUE, CONFIG, name_place("claims", OVERRIDES))
    SPECS, PATTERNS = CatalogueSpecs(CATALOGUE, CONFIG), match_catalogue(CATALOGUE)
    TARGETS = Targets(CONFIG, CATALOGUE)
# The results of this call. Those of a rule, such as EVALUATION.scores, have its wildcards.
RESULTS = result_folders.RESULTS.scale(CONFIG.scale)
# Snakemake takes a brace in the path of the checkout for a wildcard, unless it is doubled.
ENVIRONMENT = str(Path("envs/environment.yaml").resolve()).replace("{", "{{").replace("}", "}}")


def submits_jobs():
    if workflow.dryrun:
        return find_own_executor() != "local"
    return not workflow.local_exec


JOBS = JobInputs(
    CONFIG,
    SPECS,
    submits_jobs=submits_jobs,
    default_resources=read_default_resources(workflow.resource_settings.default_resources),
)


def list_call_jobs():
    groups = [make_paper_group(CATALOGUE, CONFIG, paper) for paper in CONFIG.papers]
    return [job for group in groups for job in group.jobs]


# Before Snakemake compares results with what they would be made of.
if not IN_JOB and workflow.is_main_process:
    restore_earlier(CONFIG.earlier_bytes, JOBS, find_own_targets, list_call_jobs)
# Resources of jobs on runs, by their names. `gpu` is 1 if the job uses a GPU of this machine:
# `--resources gpu=N` limits how many of them run at once.
GPU = JOBS.list_gpu_resources()
GPU_OF_TRAINING = JOBS.list_gpu_resources(saves_state=True)


# The image that envs/container.def builds; used with `--sdm apptainer` only.
container: "envs/recompose.sif"


wildcard_constraints:
    **PATTERNS.names,


def find_call_work():
    return CallWork(CATALOGUE, CONFIG, JOBS.find_device(), list_dag_jobs(workflow.dag))


def print_end_of_dry_run():
    if workflow.dryrun and workflow.dag is not None:  # there is none after an error
        requests = list_requests(workflow.dag) if submits_jobs() else []
        print_dry_run(find_call_work(), requests)


# Jobs on a cluster are started with --no-hooks.
onstart:
    if not IN_JOB and not workflow.touch:
        set_priorities(workflow.dag, CATALOGUE, CONFIG)
        work = find_call_work()
        print_work(work, workflow.logger_manager)
        store_numbers(work.jobs)
        EarlierResults(CONFIG.earlier_bytes).keep_stale(work.jobs)
    JOBS.store_fingerprints()
    write_spec_files(SPECS, JOBS.recorded_jobs)


# Snakemake does not call `onstart` in a dry run. Whether it is one is not known here yet.
if workflow.is_main_process:
    atexit.register(print_end_of_dry_run)

# Options of a command that change no result (device, mirror, models) or that the fingerprint has
# (precision) are strings under `resources:`. As parameters they would rerun jobs when they change,
# and `snakemake --lint` refuses a command with the name of a global. Snakemake does nothing with a
# resource that no limit names: tests/workflow/test_option_resources.py.
