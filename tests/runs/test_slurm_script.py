"""What the SLURM executor does before there is a cluster: batch scripts, options and messages."""

import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from proctor.core.errors import UserError
from proctor.core.options import checked_options
from proctor.runs.attempts import Attempts
from proctor.runs.slurm_executor import SlurmExecutor, SlurmOptions, write_script

RUN = ("run", "--suite", "houses-v1", "--episodes", "1", "--policy", "forward", "--env", "mock")


def options(**given):
    return checked_options(SlurmOptions, given, "executor slurm", strict=False)


def flags(script):
    lines = [line.removeprefix("#SBATCH ") for line in script.read_text().splitlines() if "#SBATCH" in line]
    return [word for line in lines for word in shlex.split(line)]


def test_a_batch_script_says_all_that_sbatch_and_a_reader_need(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = write_script(tmp_path, 3, options())
    assert script.read_text() == (
        "#!/bin/bash\n"
        f"# The workers of a run of Proctor. To add some: sbatch {tmp_path}/slurm/worker.sh\n"
        "#SBATCH --job-name=proctor\n"
        "#SBATCH --array=1-3\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --ntasks=1\n"
        "#SBATCH --cpus-per-task=1\n"
        f"#SBATCH --chdir={tmp_path}\n"
        f"#SBATCH --output={tmp_path}/slurm/%A_%a.log\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --requeue\n"
        'echo "task $SLURM_ARRAY_TASK_ID on $SLURMD_NODENAME, restarted ${SLURM_RESTART_COUNT:-0} times"\n'
        f"exec {sys.executable} -m proctor.cli work {tmp_path} --workers 1\n"
    )


def test_options_become_flags_of_sbatch_and_lines_of_the_script(tmp_path):
    given = options(
        partition="gpu",
        time=30,
        mem="4G",
        account="lab",
        qos="low",
        gres="gpu:1",
        constraint="a100|h100",
        parallel="2",
        workers_per_task=4,
        extra=["--exclude=n7", "--comment 'two words'"],
        setup=["module load cuda", "export MUJOCO_EGL_DEVICE_ID=0"],
        command="apptainer exec --nv /images/proctor.sif proctor",
    )
    script = write_script(tmp_path, 5, given)
    expected = (
        "--array=1-5%2 --cpus-per-task=4 --partition=gpu --time=30 --mem=4G --account=lab --qos=low "
        "--gres=gpu:1 --constraint=a100|h100 --requeue --exclude=n7 --comment"
    )
    assert set(expected.split()) <= set(flags(script))
    assert "two words" in flags(script)
    *_, first, second, last = script.read_text().splitlines()
    assert (first, second) == tuple(given.setup)
    assert last == f"exec apptainer exec --nv /images/proctor.sif proctor work {tmp_path} --workers 4"


def test_folders_with_odd_names_are_quoted(tmp_path, monkeypatch):
    run = tmp_path / 'it\'s 100% "odd" #1 $HOME'
    run.mkdir()
    monkeypatch.chdir(run)
    script = write_script(run, 1, options(command="printf '%s\\n'"))
    assert f"--chdir={run}" in flags(script)
    assert f"--output={run}/slurm/%A_%a.log".replace("100%", "100%%") in flags(script)
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=True)
    assert done.stdout.partition("\n")[2] == f"work\n{run}\n--workers\n1\n"


@pytest.mark.parametrize("given", [{"partition": "a\nrm -rf ."}, {"extra": ["--comment=a\r"]}])
def test_an_option_cannot_add_lines_to_the_script(tmp_path, given):
    with pytest.raises(UserError, match="cannot have a line break"):
        write_script(tmp_path, 1, options(**given))
    assert not (tmp_path / "slurm").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"partitions": "gpu"}, "has no option 'partitions'; did you mean 'partition'"),
        ({"parallel": 0}, "option parallel of the executor slurm"),
        ({"max_resubmits": -1}, "option max_resubmits of the executor slurm"),
        ({"extra": ["nodes=1"]}, "expected flags of sbatch, such as --exclude=n7, found 'nodes=1'"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, given, message):
    with pytest.raises(UserError, match=message):
        write_script(tmp_path, 1, options(**given))


@pytest.mark.parametrize(("workers", "per_task", "tasks"), [(None, 1, 1), (5, 1, 5), (5, 2, 3), (1, 4, 1)])
def test_the_workers_are_shared_out_among_tasks(workers, per_task, tasks):
    given = msgspec.structs.asdict(options(workers_per_task=per_task))
    assert SlurmExecutor(None, workers, **given).tasks == tasks


def test_a_run_that_others_have_completed_meanwhile_needs_no_cluster():
    given = msgspec.structs.asdict(options())
    assert list(SlurmExecutor(None, 2, **given).run(Attempts([]))) == []


def test_without_slurm_the_user_is_told_what_to_do_and_nothing_is_written(proctor, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    code, _, told = proctor(*RUN, "--executor", "slurm", "--out", tmp_path / "run")
    assert code == 2
    assert told == (
        "error: SLURM is not available here. Its command sbatch is not on the PATH. Give this command on a "
        "login node of the cluster, or put `proctor work FOLDER` into a job script of your own\n"
    )
    assert not Path(tmp_path / "run").exists()
