# Jobs that read the catalogue and the papers: they are not submitted, so Snakemake in a job does
# not read this file.

from workflow_scripts.workflow.report_jobs import ReportJobs

REPORT = ReportJobs(JOBS, CATALOGUE)


# The first page of Snakemake's report.
report: f"../{RESULTS.claims.overview}"


# Not submitted to a cluster, because they take seconds.
localrules:
    table,
    figure,
    claims,
    record_config,
    page,
    site,
    snakemake_report,


rule table:
    input:
        REPORT.list_inputs("table"),
        unfinished=REPORT.find_unfinished("table"),
    output:
        csv=TABLE.csv,
        markdown=TABLE.markdown,
        latex=TABLE.latex,
        record=TABLE.record,
        html=report(
            TABLE.html,
            caption="captions/display.rst",
            category="{paper}",
            subcategory=REPORT.get_display_group,
            labels=REPORT.format_display_labels,
        ),
    log:
        "results/{scale}/logs/table/{paper}/{display}.log",
    wildcard_constraints:
        display=PATTERNS.displays["table"],
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("table"),
        caption=REPORT.read_display_caption,
        runs=REPORT.list_runs,
    shell:
        "python -m workflow_scripts table --paper {wildcards.paper:q} --display {wildcards.display:q}"
        " --scale {wildcards.scale:q} --results results/{wildcards.scale:q}"
        ' --out "$(dirname {output.record:q})" --runs {params.runs:q}'
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


rule figure:
    input:
        REPORT.list_inputs("figure"),
        unfinished=REPORT.find_unfinished("figure"),
    output:
        csv=FIGURE.csv,
        png=FIGURE.png,
        record=FIGURE.record,
        svg=report(
            FIGURE.svg,
            caption="captions/display.rst",
            category="{paper}",
            subcategory=REPORT.get_display_group,
            labels=REPORT.format_display_labels,
        ),
    log:
        "results/{scale}/logs/figure/{paper}/{display}.log",
    wildcard_constraints:
        display=PATTERNS.displays["figure"],
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("figure"),
        caption=REPORT.read_display_caption,
        runs=REPORT.list_runs,
    shell:
        "python -m workflow_scripts figure --paper {wildcards.paper:q} --display {wildcards.display:q}"
        " --scale {wildcards.scale:q} --results results/{wildcards.scale:q}"
        ' --out "$(dirname {output.record:q})" --runs {params.runs:q}'
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


rule claims:
    input:
        REPORT.list_inputs("claims"),
        unfinished=REPORT.find_unfinished("claims"),
    output:
        ledger=SCALE.claims.table,
        sides=SCALE.claims.sides,
        record=SCALE.claims.record,
        overview=SCALE.claims.overview,
    log:
        "results/{scale}/logs/claims.log",
    conda:
        ENVIRONMENT
    params:
        fingerprint=REPORT.fingerprint("claims"),
        papers=CONFIG.papers,
        config=[
            f"{key}={format_canonical_json(getattr(CONFIG, key))}" for key in ("seeds", "extra", "only", "precision")
        ],
    shell:
        "python -m workflow_scripts claims --papers {params.papers:q} --scale {wildcards.scale:q}"
        " --config {params.config:q} --results results/{wildcards.scale:q} --out {output.ledger:q}"
        " --unfinished {input.unfinished:q} > {log:q} 2>&1"


# The configuration of results/<scale>/ with --config, without paths and devices, which change no
# result. The page and Snakemake's report are made with it.
rule record_config:
    input:
        TARGETS.list_displays("table", [TABLE.html]),
        TARGETS.list_displays("figure", [FIGURE.svg]),
        RESULTS.claims.table,
    output:
        RESULTS.config,
    log:
        f"results/{CONFIG.scale}/logs/config.log",
    conda:
        ENVIRONMENT
    params:
        config=format_canonical_json(CONFIG.model_dump(exclude={"data", "models", "device", "claims", "keep_earlier"})),
        # When everything is finished, nothing says any more what was not.
        outdated=[] if CONFIG.finished_only else str(RESULTS.unfinished),
    shell:
        "printf '%s\\n' {params.config:q} > {output:q} 2> {log:q}; rm -f {params.outdated:q}"


# The page of the results, with which ./reproduce ends. After a change of its code or its templates
# only with `-R page`; titles and citations of the papers, and what metrics mean, are a parameter.
rule page:
    input:
        RESULTS.config,
    output:
        RESULTS.page,
    log:
        f"results/{CONFIG.scale}/logs/page.log",
    conda:
        ENVIRONMENT
    params:
        texts=REPORT.digest_page_texts(),
    shell:
        'python -m workflow_scripts page --results "$(dirname {input:q})" > {log:q} 2>&1'


# The pages of the results: ./reproduce site. Sphinx is not in .venv until envs/docs.lock is
# installed: docs/start.md.
rule site:
    input:
        RESULTS.config,
    output:
        directory(RESULTS.site),
    log:
        f"results/{CONFIG.scale}/logs/site.log",
    conda:
        ENVIRONMENT
    shell:
        'python -m workflow_scripts site --results "$(dirname {input:q})" --out {output:q} > {log:q} 2>&1'


# Snakemake's report: ./reproduce results/demo/report.html.
rule snakemake_report:
    input:
        RESULTS.config,
    output:
        RESULTS.report,
    log:
        f"results/{CONFIG.scale}/logs/report.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m snakemake --workflow-profile none --configfile {input:q} --report {output:q} > {log:q} 2>&1"
