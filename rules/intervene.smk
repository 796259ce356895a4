rule candidates:
    input:
        JOBS.list_candidate_manifests,
        # The manifests hold the sha256 of these files, so `ancient` may ignore their times: a
        # changed file still reruns this.
        sources=ancient(JOBS.list_candidate_sources),
        data=DATA.manifest,
    output:
        # The manifest of the folder. It holds the sha256 of the other file.
        manifest=CANDIDATES.manifest,
    log:
        "results/{scale}/logs/candidates/{task}.log",
    conda:
        ENVIRONMENT
    resources:
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("candidates", 4000),
        runtime=JOBS.estimate_minutes("candidates", 60),
    params:
        fingerprint=JOBS.fingerprint("candidates"),
        spec=str(SCALE.specs.candidates("{task}")),
    shell:
        "python -m workflow_scripts candidates --spec {params.spec:q}"
        ' --data "$(dirname {input.data:q})"'
        ' --out "$(dirname {output.manifest:q})" > {log:q} 2>&1'


# One job for all interventions on a run, because they share the answers of the unchanged model.
rule intervene:
    input:
        data=DATA.manifest,
        candidates=CANDIDATES.manifest,
        run=JOBS.find_scored_manifest,
        # The manifest holds the sha256, so `ancient` may ignore the time: a changed checkpoint
        # still reruns this.
        checkpoint=ancient(JOBS.find_scored_checkpoint),
    output:
        scores=INTERVENTIONS.scores,
        answers=INTERVENTIONS.answers,
        manifest=INTERVENTIONS.manifest,
    log:
        "results/{scale}/logs/intervene/{task}/{method}/{variant}/{seed}.log",
    conda:
        ENVIRONMENT
    threads: JOBS.get_threads
    resources:
        **GPU,
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("intervene"),
        runtime=JOBS.estimate_minutes("intervene"),
        # No parameter, so that a result from another device is kept.
        device=CONFIG.device,
    params:
        fingerprint=JOBS.fingerprint("intervene"),
        spec=str(SCALE.specs.run(RUN_NAME)),
        state=str(SCALE.intervention_state(RUN_NAME)),
        scored=JOBS.list_scored_options,
    shell:
        "python -m workflow_scripts intervene --device {resources.device:q}"
        ' --candidates "$(dirname {input.candidates:q})" --data "$(dirname {input.data:q})"'
        " --spec {params.spec:q} {params.scored:q} --state {params.state:q}"
        ' --out "$(dirname {output.manifest:q})" > {log:q} 2>&1'
