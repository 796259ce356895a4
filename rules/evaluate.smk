rule evaluate:
    input:
        data="results/{scale}/data/{task}/dataset.json",
        run="results/{scale}/runs/{task}/{method}/{variant}/{seed}/run.json",
        # run.json has its sha256: the time of a large file says nothing more.
        checkpoint=ancient("results/{scale}/runs/{task}/{method}/{variant}/{seed}/checkpoint/model.safetensors"),
    output:
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/predictions.parquet",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/scores.csv",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/evaluation.json",
    log:
        "results/{scale}/logs/evaluate/{task}/{method}/{variant}/{seed}.log",
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
        # How a variant is scored is the same for all of its seeds.
        fingerprint=WORKFLOW.fingerprint("evaluate", seed="seed-0"),
        run=RUN,
    shell:
        "python -m workflow_scripts evaluate --device {resources.device}"
        " --data results/{wildcards.scale}/data/{wildcards.task}"
        " --run-dir results/{wildcards.scale}/runs/{params.run}"
        " --out results/{wildcards.scale}/runs/{params.run}/eval"
        " > {log} 2>&1"
