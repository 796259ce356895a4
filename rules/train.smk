rule train:
    input:
        data="results/{scale}/data/{task}/dataset.json",
        init=origin_manifest,
        # run.json has its sha256: the time of a large file says nothing more.
        checkpoint=ancient(parent_checkpoint),
    output:
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/checkpoint/model.safetensors",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/training.csv",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/run.json",
    log:
        "results/{scale}/logs/train/{task}/{method}/{variant}/{seed}.log",
    conda:
        "../envs/environment.yaml"
    threads: run_resource("train", "threads")
    resources:
        # The processes of a job belong to one machine: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=run_resource("train", "mem_mb"),
        runtime=run_resource("train", "runtime"),
        # As many as the run asks for, where the job will take GPUs: then no more of them are in use at once here than
        # `--resources gpu=N` allows.
        gpu=run_resource("train", "gpu"),
        # Not a parameter: a run that was made on another device is not made again.
        device=CONFIG.device,
        # Nor is this: what comes of it for the run stands in its facts.
        precision=CONFIG.precision,
    params:
        facts=facts_of("train"),
        run=RUN,
        state=train_state,
        init=init_option,
    shell:
        "python -m workflow_scripts train --run {params.run}"
        " --scale {wildcards.scale} --precision {resources.precision} --device {resources.device}"
        " --data results/{wildcards.scale}/data/{wildcards.task}"
        " {params.init}"
        " --out results/{wildcards.scale}/runs/{params.run}"
        " --state {params.state} > {log} 2>&1"
