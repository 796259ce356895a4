# Data flow:
# fetch -> prepare -> train -> evaluate, intervene, analyse -> tables, figures -> claims -> page.
# Results are in results/<scale>/, downloads in results/downloads/. catalogue/ and papers/ define
# what can be run.


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/intervene.smk"
include: "rules/analyse.smk"


# The inputs are lambdas, so that Snakemake in a job on a cluster, which reads this file too, does not
# make the lists.
if CONFIG.claims and not IN_JOB:

    include: "rules/claim.smk"

    # The claims that the configuration names, and what they need.
    rule all:
        default_target: True
        input:
            lambda _: TARGETS.list_claims(rules.claim.output),

elif not IN_JOB:

    include: "rules/report.smk"

    # Everything that the chosen papers request at the chosen scale. Every file is named, so that
    # Snakemake makes a deleted file again, and a file that a rule newly declares.
    rule all:
        default_target: True
        input:
            lambda _: TARGETS.list_once(rules.page.output),
            lambda _: TARGETS.list_once(rules.record_config.output),
            lambda _: TARGETS.list_once(rules.claims.output),
            lambda _: TARGETS.list_displays("table", rules.table.output),
            lambda _: TARGETS.list_displays("figure", rules.figure.output),
            lambda _: TARGETS.list_analyses(rules.analyse.output),
            lambda _: TARGETS.list_runs(rules.train.output, rules.evaluate.output, rules.intervene.output),


# Trainings, evaluations and interventions only, without tables and figures.
rule runs:
    input:
        lambda _: TARGETS.list_runs(rules.train.output, rules.evaluate.output, rules.intervene.output),


# Source files and models of the hub only. Afterwards no job needs a network.
rule downloads:
    input:
        lambda _: TARGETS.list_downloads(),
