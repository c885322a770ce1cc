# All that synmask needs, for Docker and Apptainer: docs/workflow.md, "Containers". The repository itself is mounted as /project,
# since rules depend on the library's source files and results stay outside.
FROM python:3.11-slim-bookworm

# g++: the operator of P_D, and parts of fairseq; a JDK: CoreNLP; git: the commit in scores
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jdk-headless g++ git make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/synmask
COPY requirements/uv.txt requirements/pipeline.txt requirements/fairseq.txt requirements/
# UV_COMPILE_BYTECODE: whoever runs the image may not write into it
ENV UV_SYSTEM_PYTHON=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
RUN pip install --no-cache-dir --require-hashes -r requirements/uv.txt \
    && uv pip install --require-hashes -r requirements/pipeline.txt \
    && uv pip install --require-hashes --no-deps -r requirements/fairseq.txt
# for the command `synmask`, which imports what is mounted
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN uv pip install --no-deps --no-build-isolation .

# USER: Snakemake asks for the user's name, which `docker run --user` leaves unknown
ENV HOME=/tmp USER=synmask PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/project/src
WORKDIR /project
CMD ["snakemake"]
