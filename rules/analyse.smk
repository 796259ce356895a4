rule analyse:
    input:
        analysis_inputs,
        checkpoints=ancient(analysis_checkpoints),
    output:
        # The manifest of the folder: it holds the sha256 of the other files.
        "results/{scale}/analyses/{paper}/{analysis}/analysis.json",
    log:
        "results/{scale}/logs/analyse/{paper}/{analysis}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        mem_mb=memory(4),
        runtime="1h",
    params:
        facts=facts_of("analyse"),
        runs=analysis_run_names,
    shell:
        "python -m workflow_scripts analyse --paper {wildcards.paper} --analysis {wildcards.analysis}"
        " --scale {wildcards.scale} --results results/{wildcards.scale}"
        " --out results/{wildcards.scale}/analyses/{wildcards.paper}/{wildcards.analysis} --runs {params.runs} > {log} 2>&1"
