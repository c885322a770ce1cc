"""The command `synmask`, and one line where the pipeline's packages are missing."""

import sys


def main() -> None:
    """Run a verb of the pipeline (`synmask.pipeline.cli`)."""
    try:
        from synmask.pipeline import cli
    except ModuleNotFoundError as error:
        if str(error.name).split(".")[0] == "synmask":
            raise
        sys.exit(
            f"synmask: {error.name} is not installed: the command needs the pipeline's packages; in a clone, "
            "`make demo` installs them (the library alone, `import synmask`, needs only torch)"
        )
    cli.main()


if __name__ == "__main__":
    main()
