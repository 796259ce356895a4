rule analyse:
    input:
        analysis_inputs,
    output:
        directory("results/{scale}/analyses/{paper}/{analysis}"),
    log:
        "results/{scale}/logs/analyse/{paper}/{analysis}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        # A job is one process: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=mem_mb(analyse_resources),
        runtime=runtime(analyse_resources),
    params:
        facts=analysis_facts,
        runs=analysis_run_names,
    shell:
        "python -m workflow_scripts analyse --paper {wildcards.paper} --analysis {wildcards.analysis}"
        " --scale {wildcards.scale} --results results/{wildcards.scale} --out {output} --runs {params.runs} > {log} 2>&1"
