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
        fingerprint=WORKFLOW.fingerprint("fetch"),
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
        fingerprint=WORKFLOW.fingerprint("fetch_model"),
    shell:
        "python -m workflow_scripts fetch-model {wildcards.model}"
        " --out results/downloads/models/{wildcards.model} {resources.models} > {log} 2>&1"


rule prepare:
    input:
        WORKFLOW.data_source_manifests,
        # The manifests have their sha256: the time of a large file says nothing more.
        sources=ancient(WORKFLOW.data_sources),
    output:
        # The manifest of the folder: it holds the sha256 of the other files.
        "results/{scale}/data/{task}/dataset.json",
    log:
        "results/{scale}/logs/prepare/{task}.log",
    conda:
        "../envs/environment.yaml"
    params:
        fingerprint=WORKFLOW.fingerprint("prepare"),
    shell:
        "python -m workflow_scripts prepare --task {wildcards.task} --scale {wildcards.scale}"
        " --out results/{wildcards.scale}/data/{wildcards.task} > {log} 2>&1"


# Of the tasks that say how much disk they need: hours on many cores, which is no work for a login node.
use rule prepare as prepare_large with:
    wildcard_constraints:
        **WORKFLOW.large_data(),
    threads: WORKFLOW.fixed_resource("prepare_large", "threads")
    resources:
        nodes=1,
        mem_mb=WORKFLOW.fixed_resource("prepare_large", "mem_mb"),
        runtime=WORKFLOW.fixed_resource("prepare_large", "runtime"),


ruleorder: prepare_large > prepare
