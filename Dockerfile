# All that synmask needs, for Docker and Apptainer: docs/workflow.md, "Containers". The repository itself is mounted as /project,
# since rules depend on the library's source files and results stay outside.
FROM python:3.11-slim-bookworm

# g++: the operator of P_D, and parts of fairseq; a JDK: CoreNLP; git: the commit in scores
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jdk-headless g++ git make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/synmask
COPY requirements/pipeline.txt requirements/fairseq.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/pipeline.txt \
    && pip install --no-cache-dir --require-hashes --no-deps -r requirements/fairseq.txt
# for the command `synmask`, which imports what is mounted
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

# USER: Snakemake asks for the user's name, which `docker run --user` leaves unknown
ENV HOME=/tmp USER=synmask PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/project/src
WORKDIR /project
CMD ["snakemake"]
