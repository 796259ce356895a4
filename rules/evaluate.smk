rule evaluate:
    input:
        data=DATA.manifest,
        run=JOBS.find_scored_manifest,
        # The manifest holds the sha256, so `ancient` may ignore the time: a changed checkpoint
        # still reruns this.
        checkpoint=ancient(JOBS.find_scored_checkpoint),
    output:
        predictions=EVALUATION.predictions,
        scores=EVALUATION.scores,
        manifest=EVALUATION.manifest,
    log:
        "results/{scale}/logs/evaluate/{task}/{method}/{variant}/{seed}.log",
    conda:
        ENVIRONMENT
    threads: JOBS.get_threads
    resources:
        **GPU,
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("evaluate"),
        runtime=JOBS.estimate_minutes("evaluate"),
        # No parameter, so that a result from another device is kept.
        device=CONFIG.device,
    params:
        fingerprint=JOBS.fingerprint("evaluate"),
        spec=str(SCALE.specs.run(RUN_NAME)),
        scored=JOBS.list_scored_options,
    shell:
        "python -m workflow_scripts evaluate --device {resources.device:q}"
        ' --data "$(dirname {input.data:q})" --spec {params.spec:q} {params.scored:q}'
        ' --out "$(dirname {output.manifest:q})" > {log:q} 2>&1'
