"""What the SLURM executor does before there is a cluster: batch scripts, options and messages."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from proctor.core.errors import UserError
from proctor.core.options import checked_options
from proctor.runs import slurm, slurm_executor
from proctor.runs.attempts import Attempts
from proctor.runs.slurm import SlurmUnreachable
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


def test_only_the_user_can_read_what_setup_gives_to_the_tasks(tmp_path):
    script = write_script(tmp_path, 1, options(setup=["export PROCTOR_CHAT_KEY=hidden"]))
    assert script.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--budget-usd", "1"), "error: --executor slurm: a run with a budget cannot be shared"),
        (("--budget-tokens", "9", "--dry-run"), "error: --executor slurm: a run with a budget cannot be"),
        (("--executor-option", 'extra=["nodes=1"]'), "error: option extra: expected flags of sbatch"),
        (
            ("--executor-option", 'extra=["-n\\n1"]', "--dry-run"),
            "error: a flag of sbatch cannot have a line",
        ),
    ],
)
def test_a_run_that_cannot_be_done_is_refused_before_anything_is_written(proctor, tmp_path, more, problem):
    code, _, told = proctor(*RUN, "--executor", "slurm", "--out", tmp_path / "run", *more)
    assert code == 2
    assert told.startswith(problem)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A folder of commands before those of SLURM: `commands(NAME, SCRIPT)` adds one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def add(name, body):
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)

    return add


def submitted(tmp_path, commands, monkeypatch, given, **more):
    """Submit a script with variables of the user; return those of them that sbatch sees."""
    for name in given:
        monkeypatch.setenv(name, "1")
    commands("sbatch", f"env >{tmp_path}/seen\necho 7")
    assert slurm.submit(write_script(tmp_path, 1, options(**more))) == "7"
    seen = {line.partition("=")[0] for line in (tmp_path / "seen").read_text().splitlines()}
    return seen & set(given)


ALWAYS_GIVEN = {
    *("SBATCH_JOB_NAME", "SBATCH_ARRAY_INX", "SBATCH_OUTPUT", "SBATCH_ERROR", "SBATCH_OPEN_MODE"),
    *("SBATCH_REQUEUE", "SBATCH_NO_REQUEUE", "SBATCH_WAIT", "SBATCH_CLUSTERS"),
}
DEFAULTS = {
    *("SBATCH_ACCOUNT", "SBATCH_PARTITION", "SBATCH_TIMELIMIT", "SBATCH_MEM_PER_NODE", "SBATCH_MEM_PER_CPU"),
    *("SBATCH_QOS", "SBATCH_RESERVATION", "SBATCH_EXPORT"),
}


def test_variables_of_sbatch_do_not_contradict_the_script(tmp_path, commands, monkeypatch):
    assert submitted(tmp_path, commands, monkeypatch, ALWAYS_GIVEN | DEFAULTS) == DEFAULTS


def test_variables_of_sbatch_are_defaults_of_options(tmp_path, commands, monkeypatch):
    more = {"account": "lab", "time": 30, "mem": "4G", "extra": ["-p gpu --reservation=robots", "-q low"]}
    assert submitted(tmp_path, commands, monkeypatch, DEFAULTS, **more) == {"SBATCH_EXPORT"}


@pytest.mark.parametrize(
    ("name", "variable", "call"),
    [
        ("squeue", "SQUEUE_PARTITION", lambda: slurm.tasks_of(["7"])),
        ("squeue", "SQUEUE_STATES", lambda: slurm.jobs_of_script(Path("worker.sh"))),
        ("scancel", "SCANCEL_INTERACTIVE", lambda: slurm.cancel(["7"])),
    ],
)
def test_variables_of_the_user_hide_no_job(tmp_path, commands, monkeypatch, name, variable, call):
    monkeypatch.setenv(variable, "1")
    commands(name, f"env >{tmp_path}/seen")
    call()
    assert f"\n{variable}=" not in (tmp_path / "seen").read_text()


def test_jobs_in_hidden_partitions_are_found(tmp_path, commands):
    script = tmp_path / "worker.sh"
    commands("squeue", f'case " $* " in *" -a "*) echo "7|PENDING|{script}" ;; esac')
    assert slurm.jobs_of_script(script) == ["7"]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("Job refused: give --account", UserError),
        ("Unable to contact slurm controller (connect failure)", SlurmUnreachable),
        ("slurm_persist_conn_open: failed to send: Connection refused", SlurmUnreachable),
    ],
)
def test_a_job_that_is_refused_is_told_from_a_controller_that_is_away(tmp_path, commands, told, error):
    commands("sbatch", f'echo "sbatch: error: {told}" >&2\nexit 1')
    with pytest.raises(error, match=re.escape(told)):
        slurm.submit(tmp_path / "worker.sh")


@pytest.fixture
def cluster(tmp_path, commands):
    """Commands of SLURM that know a job as soon as there is a file `job`. Return what was cancelled."""
    script, job, cancelled = (tmp_path / name for name in ("slurm/worker.sh", "job", "cancelled"))
    there = f"[ -e {job} ] && [ ! -e {cancelled} ]"
    commands("squeue", f'case "$*" in *-j*) exit 0 ;; esac\nif {there}; then echo "7|PENDING|{script}"; fi')
    commands("scancel", f"echo $* >>{cancelled}")
    return lambda: cancelled.read_text().split() if cancelled.exists() else []


def began(tmp_path):
    """An array that has been asked to submit its script once."""
    script = write_script(tmp_path, 1, options())
    array = slurm_executor.JobArray(script.parent, options())
    note = array.watch(0, "")
    return array, note


def test_a_job_whose_sbatch_does_not_answer_is_cancelled(tmp_path, commands, cluster, monkeypatch):
    monkeypatch.setattr(slurm, "COMMAND_DEADLINE_S", 0.5)
    commands("sbatch", f"touch {tmp_path}/job\nexec sleep 60")
    array, note = began(tmp_path)
    assert "sbatch did not answer in" in note
    assert array.end() == []
    assert cluster() == ["7"]


def test_a_job_that_slurm_takes_late_is_cancelled(tmp_path, commands, cluster):
    late = f"(sleep 1; touch {tmp_path}/job) >/dev/null 2>&1 &"
    commands("sbatch", f'{late}\necho "sbatch: error: Socket timed out" >&2\nexit 1')
    array, _ = began(tmp_path)
    assert array.end() == []
    assert cluster() == ["7"]


def test_a_job_that_slurm_may_take_still_is_told(tmp_path, commands, cluster, monkeypatch):
    monkeypatch.setattr(slurm_executor, "END_DEADLINE_S", 0.1)
    commands("sbatch", 'echo "sbatch: error: Socket timed out" >&2\nexit 1')
    array, _ = began(tmp_path)
    told = (
        f"sbatch did not say whether SLURM took {tmp_path}/slurm/worker.sh, and squeue does not show it yet"
    )
    assert array.end() == [told]
    commands("squeue", 'echo "slurm_load_jobs error: Unable to contact slurm controller" >&2\nexit 1')
    (told,) = array.end()
    assert told.startswith(f"a SLURM job of {tmp_path}/slurm/worker.sh may go on: SLURM's controller does")
    assert cluster() == []


def test_a_job_that_is_refused_is_not_looked_for(tmp_path, commands, cluster):
    commands("sbatch", 'echo "sbatch: error: invalid partition" >&2\nexit 1')
    array = slurm_executor.JobArray(write_script(tmp_path, 1, options()).parent, options())
    with pytest.raises(UserError, match="invalid partition"):
        array.watch(0, "")
    commands("squeue", "exit 9")
    assert array.end() == []
