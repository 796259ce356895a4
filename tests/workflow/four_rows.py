"""A paper of a table, a figure and claims, to see what is shown where runs are missing."""

PAPER = {
    "experiments.yaml": """
title: Four rows
citation: A paper of four rows
seeds: {demo: [1]}
demo:
  - {task: scan-jump-x2, methods: {transformer: [default], sq-transformer: [srl], lrf: [default]}}
  - {task: cogs, methods: {transformer: [default]}}
""",
    "displays.yaml": """
axes:
  model:
    works: {method: transformer, variant: default}
    gated: {method: sq-transformer, variant: srl}
    crashes: {method: lrf, variant: default}
displays:
  table1:
    source: Table 1
    title: Exact match
    group: Results
    rows: {each: [model]}
    columns:
      - {column: SCAN, task: scan-jump-x2, metric: exact_match}
      - {column: COGS, task: cogs, metric: exact_match}
  figure1:
    source: Figure 1
    title: Validation accuracy over training
    group: Results
    module: learning_curves
    curves: true
    runs:
      - {panel: SCAN, series: works, task: scan-jump-x2, method: transformer, variant: default}
      - {panel: SCAN, series: crashes, task: scan-jump-x2, method: lrf, variant: default}
""",
    "claims.yaml": """
claims:
  - claim: works-above-half
    statement: It answers more than half
    source: Section 1
    left: table1/works/SCAN
    right: 50
    relation: greater
  - claim: gated-over-works
    statement: The gated model is better
    source: Section 1
    left: table1/gated/SCAN
    right: table1/works/SCAN
    relation: greater
  - claim: works-on-cogs
    statement: It answers more than half of COGS
    source: Section 1
    left: table1/works/COGS
    right: 50
    relation: greater
""",
    "published.csv": "display,row,column,metric,printed,value,unit,std,n_seeds,source,note\n",
}
