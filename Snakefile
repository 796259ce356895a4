# Data flows one way: fetch -> prepare -> train -> evaluate, intervene, analyse -> tables, figures -> claims -> report.
# Everything lands in results/<scale>/, the source files in results/downloads/. What there is to run is data: catalogue/
# and papers/.


configfile: "config.yaml"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/intervene.smk"
include: "rules/analyse.smk"
include: "rules/report.smk"


# Everything that the chosen papers ask for at the chosen scale. ./reproduce then makes the report of it.
# Each file by its name, so that one that was deleted is made again, and one that a rule has come to declare is made.
# By functions: each job of a cluster reads this file twice, and asks for nothing of it.
rule all:
    default_target: True
    input:
        f"results/{CONFIG.scale}/config.json",
        expand(map(str, rules.claims.output), scale=CONFIG.scale),
        lambda _: TARGETS.displays("table", rules.table.output),
        lambda _: TARGETS.displays("figure", rules.figure.output),
        lambda _: TARGETS.analyses(rules.analyse.output),
        lambda _: TARGETS.runs([*rules.train.output, *rules.evaluate.output], rules.intervene.output),


# The trained and scored runs alone, and the interventions on them: for a machine that has the accelerator but need not
# draw the figures.
rule runs:
    input:
        lambda _: TARGETS.runs([*rules.train.output, *rules.evaluate.output], rules.intervene.output),


# The source files and the hub's models alone: for a machine that has the network. Afterwards no job needs it.
rule downloads:
    input:
        lambda _: TARGETS.downloads(),
