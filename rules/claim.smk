# With the key `claims` in the configuration: nothing but these claims, each judged alone. Results of
# all claims and the tables are not made, so that they stay those of all runs.

from workflow_scripts.workflow.report_jobs import ReportJobs

REPORT = ReportJobs(JOBS, CATALOGUE)


# Not submitted to a cluster, because it takes seconds.
localrules:
    claim,


rule claim:
    input:
        REPORT.list_inputs("claim"),
        unfinished=REPORT.find_unfinished("claim"),
    output:
        ledger=CLAIM.table,
        sides=CLAIM.sides,
        record=CLAIM.record,
    log:
        "results/{scale}/logs/claim/{paper}/{claim}.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("claim"),
        config=[
            f"{key}={format_canonical_json(getattr(CONFIG, key))}" for key in ("seeds", "extra", "only", "precision")
        ],
    shell:
        "python -m workflow_scripts claims --claim {wildcards.paper:q}/{wildcards.claim:q}"
        " --scale {wildcards.scale:q} --config {params.config:q} --results results/{wildcards.scale:q}"
        " --out {output.ledger:q} --unfinished {input.unfinished:q} > {log:q} 2>&1"
