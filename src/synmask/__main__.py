"""The command `synmask`, and one line where the pipeline's packages are missing."""

import sys


def main() -> None:
    """Run a verb of the pipeline (`synmask.pipeline.cli`)."""
    from synmask.pipeline import missing

    try:
        from synmask.pipeline import cli
    except ModuleNotFoundError as error:
        if (message := missing(error)) is None:
            raise
        sys.exit(f"synmask: {message}")
    cli.main()


if __name__ == "__main__":
    main()
