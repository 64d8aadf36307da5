"""Runs that several processes share, as tests begin them: real commands, and a world that can be held up."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import proctor
from proctor.core.types import Usage, Vector3
from proctor.exams.datasets import save_dataset
from proctor.exams.results import Fault
from proctor.exams.vln.episode import Episode
from proctor.runs.examiner import lost
from proctor.runs.job import RunJob
from proctor.runs.plan import RunConfig, plan_run
from proctor.worlds.mock import MockEnv

DEADLINE_S = 120.0
EPISODES = 12


class Paced(MockEnv):
    """A mock world that takes its time, and tells who began which episode.

    It stays in an episode for as long as there is a file `gate/ID.hold`; with `gate/ID.break` it raises.
    """

    def __init__(self, gate, step_s=0.004, api_key=""):
        super().__init__()
        self.gate, self.step_s = Path(gate), step_s

    def reset(self, episode):
        name = episode.episode_id
        (self.gate / f"{name}.{os.getsid(0)}.{os.getpid()}.begun").touch()
        deadline_s = time.monotonic() + DEADLINE_S
        while (self.gate / f"{name}.hold").exists() and time.monotonic() < deadline_s:
            time.sleep(0.01)
        if (self.gate / f"{name}.break").exists():
            raise OSError("the renderer crashed")
        return super().reset(episode)

    def step(self, action):
        time.sleep(self.step_s)
        return super().step(action)


def until(condition):
    """Wait until something is true, and return it."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, "it did not come in time"
        time.sleep(0.01)
    return found


def plan_of_one_episode(folder, **config):
    """Return the plan of a run of the episode `e` in a folder."""
    episode = Episode(
        episode_id="e", scene_id="s", goal_position=Vector3(1, 0, 0), instruction="Go.", max_steps=5
    )
    save_dataset([episode], folder / "episodes.json")
    job = RunJob(policy="random", env="mock")
    return plan_run(RunConfig(job=job, dataset=folder / "episodes.json", **config), folder / "run")


def failed(plan, side):
    """Return an attempt at the episode that has failed; a fault of the agent is scored."""
    fault = Fault(side=side, kind="crashed", message="It crashed.")
    return lost(plan.config.job.make_exam(), plan.episodes[0], 1, fault, Usage(requests=1))


def published(plan, shared, side, *, is_again=False):
    """Let another process publish how its attempt at the episode ended."""
    done = failed(plan, side)
    shared.publish(done, is_again=is_again)
    return done.result


class SharedTrial:
    """A run in a folder, and the commands that do it. All of them end with the test."""

    def __init__(self, folder, *, env="shared_runs:Paced", policy=("random",), lease_s=2.0):
        self.folder, self.out, self.gate = folder, folder / "run", folder / "gate"
        self.gate.mkdir()
        self.dataset = folder / "episodes.json"
        save_dataset(
            [
                Episode(
                    episode_id=f"ep_{index}",
                    scene_id=f"scene_{index % 3}",
                    goal_position=Vector3(0.75 + index % 2, 0, 0),
                    instruction=f"Go there, number {index}.",
                    max_steps=30,
                )
                for index in range(EPISODES)
            ],
            self.dataset,
        )
        self.env, self.policy, self.lease_s = env, policy, lease_s
        self._processes, self._paths = [], [Path(__file__).parent, Path(proctor.__file__).parents[1]]

    def words(self, *more):
        """Return the command line of the run."""
        return [
            *("run", "--dataset", self.dataset, "--env", self.env, "--env-option", f"gate={self.gate}"),
            *("--policy", *self.policy, "--out", self.out, "--lease", self.lease_s, *more),
        ]

    def begin(self, *more, **options):
        """Start the run, or resume it."""
        return self.start(*self.words(*more), **options)

    def help(self, *more, **options):
        """Start `proctor work`."""
        return self.start("work", self.out, *more, **options)

    def join(self, *more, **options):
        """Start the run's own command with --join."""
        return self.begin("--join", *more, **options)

    def start(self, *words, prefix=(), cwd=None, environ=None):
        """Start a command of Proctor in a process group of its own."""
        log = (self.folder / f"log.{len(self._processes)}").open("w+b")
        process = subprocess.Popen(
            list(map(str, (*prefix, sys.executable, "-m", "proctor.cli", *words))),
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=cwd or self.folder,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, self._paths)),
                "COLUMNS": "200",
                **(environ or {}),
            },
            start_new_session=True,
        )
        process.log = log
        self._processes.append(process)
        return process

    def site(self, source):
        """Let all commands from now on run some code first."""
        (self.folder / "site").mkdir()
        (self.folder / "site" / "sitecustomize.py").write_text(source)
        self._paths.insert(0, self.folder / "site")

    def late(self, where):
        """Return environment variables for `late_command.py`."""
        return {"LATE_AT": where, "LATE_GATE": str(self.folder / "late")}

    def end(self, *processes):
        """Wait for commands, and return exit code and output of each."""
        ends = []
        for process in processes:
            code = process.wait(DEADLINE_S)
            said = Path(process.log.name).read_text()
            assert "Traceback" not in said, said
            ends.append((code, said))
        return ends

    def done(self, *words, code=0, **options):
        """Do a command to its end, and return what it said."""
        (ended,) = self.end(self.start(*words, **options))
        assert ended[0] == code, ended
        return ended[1]

    def quiet(self):
        """Return the results of the same run by one process that nobody disturbs, once for each test."""
        out = self.folder / "quiet"
        if not out.exists():
            words = [out if word == self.out else word for word in self.words()]
            held = [file.rename(file.with_suffix(".was")) for file in self.gate.glob("*.hold")]
            assert self.end(self.start(*words, "--env-option", "step_s=0.0"))[0][0] == 0
            for file in held:
                file.rename(file.with_suffix(".hold"))
        return (out / "results.json").read_bytes()

    def hold(self, *numbers):
        """Hold episodes up when they begin; all without numbers."""
        for number in numbers or range(EPISODES):
            (self.gate / f"ep_{number}.hold").touch()

    def let_go(self, *numbers):
        """Let episodes go on; all without numbers."""
        for number in numbers or range(EPISODES):
            (self.gate / f"ep_{number}.hold").unlink(missing_ok=True)

    def begun(self, number=None):
        """Return who has begun an episode, or any: the command's process id, once for each of its workers."""
        pattern = "*.begun" if number is None else f"ep_{number}.*.begun"
        return [int(file.name.split(".")[1]) for file in self.gate.glob(pattern)]

    def await_begun(self, *processes):
        """Wait until each of these commands has begun an episode; return which one each began first."""
        until(lambda: {process.pid for process in processes} <= set(self.begun()))
        numbers = range(EPISODES)
        return [next(n for n in numbers if process.pid in self.begun(n)) for process in processes]

    def records(self):
        """Return the lines of the journal that are whole."""
        journal = self.out / "episodes.jsonl"
        *lines, _torn = journal.read_bytes().split(b"\n") if journal.exists() else [b""]
        return [json.loads(line) for line in lines]

    def scored(self):
        """Return the episodes that are scored in the journal, one for each such line."""
        records = self.records()
        unscored = ("evaluator", "unknown", "unavailable")
        return [r["episode_id"] for r in records if not (r["error"] and r["error"]["side"] in unscored)]

    def done_count(self):
        """Return how many episodes have been done, by anybody."""
        records = self.out / "work" / "records"
        found = {file.name for file in records.iterdir()} if records.exists() else set()
        return len({name for name in found if not name.startswith(".")} | set(self.scored()))

    def check_results(self):
        """Check that the run is complete, that nothing is scored twice, and that nothing is left over."""
        assert sorted(self.scored()) == sorted(f"ep_{index}" for index in range(EPISODES))
        assert (self.out / "results.json").read_bytes() == self.quiet()
        left = {file.name for file in self.out.iterdir()}
        assert left - {"recordings"} == {file.name for file in (self.folder / "quiet").iterdir()}

    def close(self):
        """End all commands, their workers too."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(DEADLINE_S)
            process.log.close()


def workers_of(process):
    """Return the pool workers of a command: the processes that its fork server has started."""
    found = {int(stat.parent.name): _parent(stat) for stat in Path("/proc").glob("[0-9]*/stat")}
    servers = {child for child, parent in found.items() if parent == process.pid}
    return sorted(child for child, parent in found.items() if parent in servers)


def _parent(stat):
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # gone
        return 0
