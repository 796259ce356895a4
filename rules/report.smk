# Jobs that read the catalogue and the papers: they are not submitted, so Snakemake in a job does
# not read this file.

from workflow_scripts.provenance.unfinished import UNFINISHED
from workflow_scripts.workflow.report_jobs import ReportJobs

REPORT = ReportJobs(JOBS, CATALOGUE)


# The first page of the report. Pages with drawings and learning curves: rule site.
report: f"../results/{CONFIG.scale}/overview.rst"


# Not submitted to a cluster, because they take seconds.
localrules:
    table,
    figure,
    claims,
    record_config,
    site,


rule table:
    input:
        REPORT.list_inputs("table"),
        unfinished=REPORT.find_unfinished("table"),
    output:
        "results/{scale}/tables/{paper}/{display}.csv",
        "results/{scale}/tables/{paper}/{display}.md",
        "results/{scale}/tables/{paper}/{display}.tex",
        "results/{scale}/tables/{paper}/{display}.json",
        report(
            "results/{scale}/tables/{paper}/{display}.html",
            caption="captions/display.rst",
            category="{paper}",
            subcategory=REPORT.get_display_group,
            labels=REPORT.format_display_labels,
        ),
    log:
        "results/{scale}/logs/table/{paper}/{display}.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("table"),
        caption=REPORT.read_display_caption,
        runs=REPORT.list_runs,
    shell:
        "python -m workflow_scripts table --paper {wildcards.paper:q} --display {wildcards.display:q}"
        " --scale {wildcards.scale:q} --results results/{wildcards.scale:q}"
        " --out results/{wildcards.scale:q}/tables/{wildcards.paper:q} --runs {params.runs:q}"
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


rule figure:
    input:
        REPORT.list_inputs("figure"),
        unfinished=REPORT.find_unfinished("figure"),
    output:
        "results/{scale}/figures/{paper}/{display}.csv",
        "results/{scale}/figures/{paper}/{display}.png",
        "results/{scale}/figures/{paper}/{display}.json",
        report(
            "results/{scale}/figures/{paper}/{display}.svg",
            caption="captions/display.rst",
            category="{paper}",
            subcategory=REPORT.get_display_group,
            labels=REPORT.format_display_labels,
        ),
    log:
        "results/{scale}/logs/figure/{paper}/{display}.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("figure"),
        caption=REPORT.read_display_caption,
        runs=REPORT.list_runs,
    shell:
        "python -m workflow_scripts figure --paper {wildcards.paper:q} --display {wildcards.display:q}"
        " --scale {wildcards.scale:q} --results results/{wildcards.scale:q}"
        " --out results/{wildcards.scale:q}/figures/{wildcards.paper:q} --runs {params.runs:q}"
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


rule claims:
    input:
        REPORT.list_inputs("claims"),
        unfinished=REPORT.find_unfinished("claims"),
    output:
        ledger="results/{scale}/claims.csv",
        sides="results/{scale}/claim_sides.csv",
        record="results/{scale}/claims.json",
        overview="results/{scale}/overview.rst",
    log:
        "results/{scale}/logs/claims.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("claims"),
        papers=CONFIG.papers,
        config=[f"{key}={format_canonical_json(getattr(CONFIG, key))}" for key in ("seeds", "extra", "precision")],
    shell:
        "python -m workflow_scripts claims --papers {params.papers:q} --scale {wildcards.scale:q}"
        " --config {params.config:q} --results results/{wildcards.scale:q} --out {output.ledger:q}"
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


# The configuration of results/<scale>/ with --config, without paths and devices, which change no
# result. ./reproduce makes the report with it.
rule record_config:
    input:
        TARGETS.list_displays("table", ["results/{scale}/tables/{paper}/{display}.html"]),
        TARGETS.list_displays("figure", ["results/{scale}/figures/{paper}/{display}.svg"]),
        f"results/{CONFIG.scale}/claims.csv",
    output:
        f"results/{CONFIG.scale}/config.json",
    log:
        f"results/{CONFIG.scale}/logs/config.log",
    conda:
        ENVIRONMENT
    params:
        config=format_canonical_json(CONFIG.model_dump(exclude={"data", "models", "device"})),
        # When everything is finished, nothing says any more what was not.
        outdated=[] if CONFIG.finished_only else f"results/{CONFIG.scale}/{UNFINISHED}",
    shell:
        "printf '%s\\n' {params.config:q} > {output:q} 2> {log:q}; rm -f {params.outdated:q}"


# The pages of the results: ./reproduce site. Sphinx is not in .venv until envs/docs.lock is
# installed: docs/start.md.
rule site:
    input:
        f"results/{CONFIG.scale}/config.json",
    output:
        directory(f"results/{CONFIG.scale}/site"),
    log:
        f"results/{CONFIG.scale}/logs/site.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m workflow_scripts site --results $(dirname {input:q}) --out {output:q} > {log:q} 2>&1"
