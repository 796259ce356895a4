rule analyse:
    input:
        JOBS.list_analysis_inputs,
        # The manifests hold the sha256 of these files, so `ancient` may ignore their times: a
        # changed file still reruns this.
        sources=ancient(JOBS.list_analysis_sources),
        checkpoints=ancient(JOBS.list_analysis_checkpoints),
    output:
        scores=ANALYSIS.scores,
        # The manifest of the folder. It holds the sha256 of all other files.
        manifest=ANALYSIS.manifest,
    log:
        "results/{scale}/logs/analyse/{paper}/{analysis}.log",
    conda:
        ENVIRONMENT
    resources:
        # One process: SLURM must not spread its cores over several nodes.
        nodes=1,
        mem_mb=JOBS.estimate_memory("analyse", 4000),
        runtime=JOBS.estimate_minutes("analyse", 60),
    params:
        fingerprint=JOBS.fingerprint("analyse"),
        spec=str(SCALE.specs.analysis("{paper}", "{analysis}")),
        runs=JOBS.list_analysed_runs,
    shell:
        "python -m workflow_scripts analyse --results results/{wildcards.scale:q}"
        ' --spec {params.spec:q} --out "$(dirname {output.manifest:q})" > {log:q} 2>&1'
