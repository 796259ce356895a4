# Chooses learning rate and batch size by validation on one seed, for variants whose settings have a
# `search`.
rule search:
    input:
        data=DATA.manifest,
        init=JOBS.find_init_manifest,
        # run.json holds the sha256, so `ancient` may ignore the time: a changed checkpoint still
        # reruns this.
        checkpoint=ancient(JOBS.find_init_checkpoint),
    output:
        chosen=SEARCH.chosen,
        pairs=SEARCH.pairs,
    log:
        "results/{scale}/logs/search/{task}/{method}/{variant}.log",
    wildcard_constraints:
        variant=PATTERNS.trained_variants,
    conda:
        ENVIRONMENT
    threads: JOBS.get_threads
    resources:
        **GPU_OF_TRAINING,
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("search"),
        runtime=JOBS.estimate_minutes("search"),
        # No parameter, so that a result from another device is kept.
        device=CONFIG.device,
    params:
        fingerprint=JOBS.fingerprint("search"),
        spec=str(SCALE.specs.search(VARIANT_NAME)),
        state=JOBS.locate_search_state,
        init=JOBS.format_init_option,
    shell:
        "python -m workflow_scripts search --device {resources.device:q}"
        ' --spec {params.spec:q} --data "$(dirname {input.data:q})" {params.init:q}'
        ' --out "$(dirname {output.chosen:q})"'
        " --state {params.state:q} > {log:q} 2>&1"


rule train:
    input:
        data=DATA.manifest,
        init=JOBS.find_init_manifest,
        # run.json holds the sha256, so `ancient` may ignore the time: a changed checkpoint still
        # reruns this.
        checkpoint=ancient(JOBS.find_init_checkpoint),
        search=JOBS.find_search_result,
    output:
        weights=TRAINING.weights,
        curve=TRAINING.curve,
        manifest=TRAINING.manifest,
    log:
        "results/{scale}/logs/train/{task}/{method}/{variant}/{seed}.log",
    wildcard_constraints:
        variant=PATTERNS.trained_variants,
    conda:
        ENVIRONMENT
    threads: JOBS.get_threads
    resources:
        **GPU_OF_TRAINING,
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("train"),
        runtime=JOBS.estimate_minutes("train"),
        # No parameter, so that a result from another device is kept.
        device=CONFIG.device,
    params:
        fingerprint=JOBS.fingerprint("train"),
        spec=str(SCALE.specs.run(RUN_NAME)),
        state=JOBS.locate_training_state,
        init=JOBS.format_init_option,
        search=JOBS.format_search_option,
    shell:
        "python -m workflow_scripts train --device {resources.device:q}"
        ' --spec {params.spec:q} --data "$(dirname {input.data:q})" {params.init:q}'
        ' {params.search:q} --out "$(dirname {output.manifest:q})"'
        " --state {params.state:q} > {log:q} 2>&1"
