"""The command `synmask`: signals from the first moment, and one line where packages are missing."""

import os
import signal
import sys

# Verbs that signals stop where they can go on; named here, since a signal may come while others are imported.
TRAINING_VERBS = ("train", "pretrain", "continue-pretraining", "finetune")
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU)  # the last: CPU time is up
TEMPORARY = 75  # exit code of `errors.TryAgain`, as of a stopped training: EX_TEMPFAIL in sysexits.h


def main() -> None:
    """Run a verb of the pipeline (`synmask.pipeline.cli`)."""
    stop_at_signals(training := sys.argv[1:2] and sys.argv[1] in TRAINING_VERBS)
    # before torch is loaded: else each of several workers warns that it has found no unused parameter
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from synmask.pipeline import missing

    try:
        from synmask.pipeline import cli
    except ModuleNotFoundError as error:
        if (message := missing(error)) is None:
            raise
        sys.exit(f"synmask: {message}")
    try:
        cli.main()
    finally:
        if training:  # all is saved, and its exit code is decided
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def stop_at_signals(training: bool) -> None:
    """Let signals end this process without a traceback until something listens (`training.stopping.Stop`)."""
    for number in SIGNALS if training else [signal.SIGINT]:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _stop if training else signal.SIG_DFL)


def _stop(*_: object) -> None:
    """End a training that does not listen to signals yet, or no longer: nothing is lost."""
    when = "before its first update or after its last"
    os.write(2, f"synmask {sys.argv[1]}: stopped by a signal {when}; the same command goes on\n".encode())
    os._exit(TEMPORARY)


if __name__ == "__main__":
    main()
