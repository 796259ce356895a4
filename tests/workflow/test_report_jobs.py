"""What the jobs of tables read, asked without Snakemake."""

from tests.workflow.test_jobs import Job, make_jobs
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.workflow.report_jobs import ReportJobs

OF_RUNS = {"bird", "bird-abba", "paws", "sst2", "stsb", "stsb-msrvid"}


def test_a_table_reads_the_data_of_its_runs_and_of_their_pretrainings():
    """Its notes say how these differ from the paper's."""
    reports = ReportJobs(make_jobs(scale="small", papers=["cat"]), load_catalogue())
    table = Job(scale="small", paper="cat", display="table4")
    files = reports.list_inputs("table")(table)
    manifests = {file.split("/")[3] for file in files if file.endswith("/dataset.json")}
    assert manifests == OF_RUNS | {"pairs-wordpiece"}
