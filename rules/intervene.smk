rule candidates:
    input:
        WORKFLOW.candidate_source_manifests,
        # The manifests have their sha256: the time of a large file says nothing more.
        sources=ancient(WORKFLOW.candidate_sources),
        data="results/{scale}/data/{task}/dataset.json",
    output:
        # The manifest of the folder: it holds the sha256 of the other file.
        "results/{scale}/candidates/{task}/candidates.json",
    log:
        "results/{scale}/logs/candidates/{task}.log",
    conda:
        "../envs/environment.yaml"
    resources:
        # A job is one process: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=WORKFLOW.fixed_resource("candidates", "mem_mb"),
        runtime=WORKFLOW.fixed_resource("candidates", "runtime"),
    params:
        fingerprint=WORKFLOW.fingerprint("candidates"),
    shell:
        "python -m workflow_scripts candidates --task {wildcards.task} --scale {wildcards.scale}"
        " --data results/{wildcards.scale}/data/{wildcards.task} --out results/{wildcards.scale}/candidates/{wildcards.task} > {log} 2>&1"


# All interventions on a run in one job: they start from the same answers of the same model.
rule intervene:
    input:
        data="results/{scale}/data/{task}/dataset.json",
        candidates="results/{scale}/candidates/{task}/candidates.json",
        run="results/{scale}/runs/{task}/{method}/{variant}/{seed}/run.json",
        # run.json has its sha256: the time of a large file says nothing more.
        checkpoint=ancient("results/{scale}/runs/{task}/{method}/{variant}/{seed}/checkpoint/model.safetensors"),
    output:
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/scores.csv",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/answers.parquet",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/interventions/intervention.json",
    log:
        "results/{scale}/logs/intervene/{task}/{method}/{variant}/{seed}.log",
    conda:
        "../envs/environment.yaml"
    threads: WORKFLOW.run_resource("threads")
    resources:
        # A job is one process: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=WORKFLOW.run_resource("mem_mb"),
        runtime=WORKFLOW.run_resource("runtime"),
        # 1 where the job will take a GPU: then no more of these run at once here than `--resources gpu=N` allows.
        gpu=WORKFLOW.run_resource("gpu"),
        gres=WORKFLOW.run_resource("gres"),
        # Not a parameter: a run that was made on another device is not made again.
        device=CONFIG.device,
    params:
        # What is done to a variant is the same for all of its seeds.
        fingerprint=WORKFLOW.fingerprint("intervene", seed="seed-0"),
        run=RUN,
    shell:
        "python -m workflow_scripts intervene --device {resources.device} --candidates results/{wildcards.scale}/candidates/{wildcards.task}"
        " --data results/{wildcards.scale}/data/{wildcards.task}"
        " --run-dir results/{wildcards.scale}/runs/{params.run}"
        " --out results/{wildcards.scale}/runs/{params.run}/interventions > {log} 2>&1"
