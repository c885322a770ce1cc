"""Full disks, read-only folders, missing rights, damaged data: one line, nothing half-written, and a rerun completes.

The disks are real: a small tmpfs, mounted in a name space of its own (`unshare`).
"""

import json
import shutil
import subprocess
import sys

import pytest

from small_models import fit, typed
from synmask.pipeline.errors import UserError
from warm import Warm

pytestmark = pytest.mark.xdist_group("apart")  # whose programs take seconds to start
BASH = "import subprocess, sys; subprocess.run(['bash', '-c', sys.argv[1]])"


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """Programs that start warm (warm.py), as root of a name space of their own."""
    warm = Warm(tmp_path_factory.mktemp("apart"), "unshare", "--map-root-user", "--mount")
    yield warm
    warm.close()


@pytest.fixture
def on_small_disk(apart, tmp_path):
    """Run a script where $DISK is a tmpfs of 100 kB, and $SYNMASK the command → what it printed."""

    def run(script):
        (tmp_path / "disk").mkdir()
        head = f'set -u; DISK={tmp_path}/disk; SYNMASK="{apart.python} -m synmask"\n'
        head += f"mount -t tmpfs -o size=100k none $DISK; cd {tmp_path}\n"
        command = [apart.python, "-c", BASH, head + script]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not done.stderr, done.stderr
        return done.stdout.splitlines()

    return run


def training(corpus, settings, run="$DISK/run"):
    (corpus / "settings.json").write_text(json.dumps(settings))
    return (
        f"$SYNMASK train --data {corpus}/bin --run {run} --source de --target en --seed 1 --keep 2 "
        f'--settings "$(cat {corpus}/settings.json)" 2> said; echo $? $(tail -n 1 said); '
    )


def test_a_full_disk_while_training(on_small_disk, corpus, settings):
    settings["model"] |= {"ffn_dim": 256}
    train_it = training(corpus, settings)
    output = on_small_disk(
        train_it + "(cd $DISK/run/checkpoints/*; ls; ls -A | grep -c tmp); grep -c Trace said\n"
        "mount -o remount,size=20m $DISK\n" + train_it + "ls $DISK/run",
    )
    assert output[0].startswith("1 synmask train: ")
    assert output[0].endswith("No space left on device")
    assert "stamp.json" in output
    assert output.count("0") == 2  # neither a temporary file nor a traceback
    assert output[-4].startswith("0 ")
    assert output[-3:] == ["checkpoints", "history.csv", "train.json"]


def test_a_full_disk_while_writing_text(on_small_disk, tmp_path):
    (tmp_path / "in").write_text("some words , and more\n" * 20000)
    verb = (
        "$SYNMASK tokenise --input in --output $DISK/out --language en --settings '{}' 2> said; "
        "echo $? $(cat said); ls -A $DISK | wc -l; "
    )
    output = on_small_disk(verb + "mount -o remount,size=20m $DISK; " + verb)
    assert output[0].startswith("1 synmask tokenise: ")
    assert output[0].endswith("No space left on device")
    assert output[1:] == ["0", "0", "1"]


def test_read_only_results(on_small_disk, corpus, settings):
    train_it = training(corpus, settings)
    output = on_small_disk(
        f"mount -o remount,ro $DISK; {train_it} mount -o remount,rw,size=20m $DISK; {train_it}",
    )
    assert output[0].startswith("1 synmask train: ")
    assert output[0].endswith("Read-only file system")
    assert output[1].startswith("0 ")


def test_no_right_to_write(on_small_disk, corpus, settings):
    """Root may write everywhere, so the verb runs without that power; warm, it would have its own."""
    train_it = training(corpus, settings)
    powers = "--bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search"
    weak = train_it.replace("$SYNMASK", f"setpriv {powers} {sys.executable} -m synmask")
    output = on_small_disk(
        "mount -o remount,size=20m $DISK; mkdir $DISK/run; chmod 555 $DISK/run;"
        f"{weak} ls -A $DISK/run | wc -l; chmod 755 $DISK/run; {train_it}",
    )
    assert output[0].startswith("1 synmask train: ")
    assert output[0].endswith("Permission denied")
    assert output[1] == "0"
    assert output[2].startswith("0 ")


def cut(path):
    path.write_bytes(path.read_bytes()[:-3])


def empty(path):
    path.write_bytes(b"")


def garble(path):
    path.write_bytes(b"x" * path.stat().st_size)


@pytest.mark.parametrize("name", ["train.de-en.de.idx", "train.de-en.en.bin", "valid.de-en.de.idx"])
@pytest.mark.parametrize("damage", [cut, empty, garble, lambda path: path.unlink()])
def test_damaged_binary_data(corpus, tmp_path, settings, name, damage):
    if damage is garble and name.endswith(".bin"):
        return  # other words of the same number: Snakemake's checksums notice, we cannot
    shutil.copytree(corpus / "bin", tmp_path / "bin")
    damage(tmp_path / "bin" / name)
    with pytest.raises(UserError, match=r"binarised data missing or damaged; delete its folder and rerun"):
        fit(tmp_path / "bin", tmp_path / "run", typed(settings), keep=2)
    assert not (tmp_path / "run/train.json").exists()
    shutil.copy(corpus / "bin" / name, tmp_path / "bin")
    settings["training"]["max_epochs"] = 1
    fit(tmp_path / "bin", tmp_path / "run", typed(settings), keep=1)
