# On a cluster they run where Snakemake runs and wait in no queue: there is a network, and these data take seconds to
# minutes. Large ones are prepared by prepare_large, below.
localrules:
    fetch,
    fetch_model,
    prepare,


# The command retries and resumes by itself, and refuses a file that is not the pinned one.
rule fetch:
    output:
        "results/downloads/{source}",
        # Says what was got, in a few bytes: it is what the other rules compare.
        "results/downloads/{source}.json",
    log:
        "results/downloads/logs/{source}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        # Not a parameter: another mirror has the same files.
        mirror=f"--mirror {quote(CONFIG.data.mirror)}" if CONFIG.data.mirror else "",
    params:
        facts=facts_of("fetch"),
    shell:
        "python -m workflow_scripts fetch {wildcards.source} {resources.mirror} > {log} 2>&1"


# Of a model of the Hugging Face hub. HF_ENDPOINT and HF_TOKEN are taken from the environment, and written nowhere.
rule fetch_model:
    output:
        # The manifest of the folder: it holds the sha256 of the other files.
        "results/downloads/models/{model}/model.json",
    log:
        "results/downloads/logs/models/{model}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        # Not a parameter: another folder has the same files.
        models=f"--local {quote(CONFIG.models.local)}" if CONFIG.models.local else "",
    params:
        facts=facts_of("fetch_model"),
    shell:
        "python -m workflow_scripts fetch-model {wildcards.model}"
        " --out results/downloads/models/{wildcards.model} {resources.models} > {log} 2>&1"


rule prepare:
    input:
        source_manifests,
        # The manifests have their sha256: the time of a large file says nothing more.
        sources=ancient(source_files),
    output:
        # The manifest of the folder: it holds the sha256 of the other files.
        "results/{scale}/data/{task}/dataset.json",
    log:
        "results/{scale}/logs/prepare/{task}.log",
    conda:
        "../envs/environment.yaml"
    params:
        facts=facts_of("prepare"),
    shell:
        "python -m workflow_scripts prepare --task {wildcards.task} --scale {wildcards.scale}"
        " --out results/{wildcards.scale}/data/{wildcards.task} > {log} 2>&1"


# Of the tasks that say how much disk they need: hours on many cores, which is no work for a login node.
use rule prepare as prepare_large with:
    wildcard_constraints:
        task=any_of(LARGE["task"]),
        scale=any_of(LARGE["scale"]),
    threads: fixed_resource("prepare_large", "threads")
    resources:
        nodes=1,
        mem_mb=fixed_resource("prepare_large", "mem_mb"),
        runtime=fixed_resource("prepare_large", "runtime"),


ruleorder: prepare_large > prepare
