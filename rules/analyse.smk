rule analyse:
    input:
        WORKFLOW.analysis_inputs,
        # The manifests have their sha256: the time of a large file says nothing more.
        sources=ancient(WORKFLOW.analysis_sources),
        checkpoints=ancient(WORKFLOW.analysis_checkpoints),
    output:
        # The manifest of the folder: it holds the sha256 of the other files.
        "results/{scale}/analyses/{paper}/{analysis}/analysis.json",
    log:
        "results/{scale}/logs/analyse/{paper}/{analysis}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        # A job is one process: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=WORKFLOW.fixed_resource("analyse", "mem_mb"),
        runtime=WORKFLOW.fixed_resource("analyse", "runtime"),
    params:
        fingerprint=WORKFLOW.fingerprint("analyse"),
        runs=WORKFLOW.analysis_run_names,
    shell:
        "python -m workflow_scripts analyse --paper {wildcards.paper} --analysis {wildcards.analysis}"
        " --scale {wildcards.scale} --results results/{wildcards.scale}"
        " --out results/{wildcards.scale}/analyses/{wildcards.paper}/{wildcards.analysis} --runs {params.runs} > {log} 2>&1"
