rule evaluate:
    input:
        data="results/{scale}/data/{task}",
        checkpoint="results/{scale}/runs/{task}/{method}/{variant}/{seed}/checkpoint/model.safetensors",
        run="results/{scale}/runs/{task}/{method}/{variant}/{seed}/run.json",
    output:
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/predictions.parquet",
        "results/{scale}/runs/{task}/{method}/{variant}/{seed}/eval/scores.csv",
    log:
        "results/{scale}/logs/evaluate/{task}/{method}/{variant}/{seed}.log",
    conda:
        "../envs/environment.yaml"
    threads: train_threads
    resources:
        # A job is one process: on a cluster it gets one node, whatever it asks for there.
        nodes=1,
        mem_mb=mem_mb(evaluate_resources),
        runtime=runtime(evaluate_resources),
        gpu=gpu(evaluate_resources),
        # Not a parameter: a run that was made on another device is not made again.
        device=CONFIG.device,
    params:
        facts=evaluate_facts,
        run=run_name,
    shell:
        "python -m workflow_scripts evaluate --data {input.data} --device {resources.device}"
        " --run-dir results/{wildcards.scale}/runs/{params.run}"
        " --out results/{wildcards.scale}/runs/{params.run}/eval"
        " > {log} 2>&1"
