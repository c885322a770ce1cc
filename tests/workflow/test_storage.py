"""Results in an object storage, which a stand-in for S3 on this machine is: tables of the runs that are there."""

import os
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.cluster]
BUCKET = "synmask"
LACKING = "results/demo/de-en/grammar/seed1/scores.json"


@pytest.fixture
def bucket(monkeypatch):
    """An empty bucket, and the words by which Snakemake keeps its files there."""
    boto3 = pytest.importorskip("boto3")
    pytest.importorskip("snakemake_storage_plugin_s3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_ACCESS_KEY", "nobody")
    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_SECRET_KEY", "nothing")
    keys = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing", "region_name": "us-east-1"}
    client = boto3.resource("s3", endpoint_url=f"http://{host}:{port}", **keys)
    words = ("--default-storage-provider", "s3", "--default-storage-prefix", f"s3://{BUCKET}")
    yield client.create_bucket(Bucket=BUCKET), (*words, "--storage-s3-endpoint-url", f"http://{host}:{port}")
    server.stop()


def test_tables_from_partial_results_in_a_bucket(built, project, bucket):
    there, words = bucket
    for path in (built.folder / "results").rglob("*"):
        name = str(path.relative_to(built.folder))
        if path.is_file() and not name.startswith("results/tables/") and name != LACKING:
            there.upload_file(str(path), name)
    project.config = built.config
    project.snakemake("-c1", "results/tables/demo.md", "--config", "partial=true", *words)
    table = there.Object("results/tables/demo.md").get()["Body"].read().decode()
    assert re.search(r"\| Grammar +\| +– \|", table)
    assert (
        "Missing: Grammar De→En (seed 1). To make what is missing: snakemake results/tables/demo.md" in table
    )
    scores = [line for line in table.splitlines() if line.startswith("| Transformer ")]
    assert re.search(r"\| +\**\d", scores[0])
    assert "–" not in scores[0]
    assert not Path(project.folder / "results").exists() or not os.listdir(project.folder / "results")
