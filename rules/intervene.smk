rule candidates:
    input:
        JOBS.list_candidate_manifests,
        # The manifests hold the sha256 of these files, so `ancient` may ignore their times: a
        # changed file still reruns this.
        sources=ancient(JOBS.list_candidate_sources),
        data="results/{scale}/data/{task}/dataset.json",
    output:
        # The manifest of the folder. It holds the sha256 of the other file.
        "results/{scale}/candidates/{task}/candidates.json",
    log:
        "results/{scale}/logs/candidates/{task}.log",
    conda:
        ENVIRONMENT
    resources:
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("candidates", 4000),
        runtime=60,
    params:
        fingerprint=JOBS.fingerprint("candidates"),
    shell:
        "python -m workflow_scripts candidates --spec results/{wildcards.scale:q}/specs/candidates/{wildcards.task:q}.json"
        " --data results/{wildcards.scale:q}/data/{wildcards.task:q} --out results/{wildcards.scale:q}/candidates/{wildcards.task:q} > {log:q} 2>&1"


# One job for all interventions on a run, because they share the answers of the unchanged model.
rule intervene:
    input:
        data="results/{scale}/data/{task}/dataset.json",
        candidates="results/{scale}/candidates/{task}/candidates.json",
        run=JOBS.find_scored_manifest,
        # The manifest holds the sha256, so `ancient` may ignore the time: a changed checkpoint
        # still reruns this.
        checkpoint=ancient(JOBS.find_scored_checkpoint),
    output:
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/scores.csv",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/answers.parquet",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/intervention.json",
    log:
        "results/{scale}/logs/intervene/{task}/{method}/{variant}/{seed}.log",
    conda:
        ENVIRONMENT
    threads: JOBS.get_run_resource("threads")
    resources:
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("intervene"),
        runtime=JOBS.get_run_resource("runtime"),
        # 1 if the job uses a GPU: `--resources gpu=N` limits how many of them run at once on this
        # machine.
        gpu=JOBS.get_run_resource("gpu"),
        gres=JOBS.get_run_resource("gres"),
        # No parameter, so that a result from another device is kept.
        device=CONFIG.device,
    params:
        fingerprint=JOBS.fingerprint("intervene"),
        run=RUN,
        scored=JOBS.list_scored_options,
    shell:
        "python -m workflow_scripts intervene --device {resources.device:q} --candidates results/{wildcards.scale:q}/candidates/{wildcards.task:q}"
        " --data results/{wildcards.scale:q}/data/{wildcards.task:q}"
        " --spec results/{wildcards.scale:q}/specs/{params.run:q}.json {params.scored:q}"
        " --out results/{wildcards.scale:q}/runs/{params.run:q}/interventions > {log:q} 2>&1"
