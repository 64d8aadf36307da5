"""Runs and single episodes, as tests begin them."""

from proctor.exams.vln.exam import VlnExam
from proctor.runs import run as runs
from proctor.runs.agent_ids import draw_key
from proctor.runs.examiner import Examiner
from proctor.runs.folder import RunFolder
from proctor.runs.job import RunJob
from proctor.runs.plan import plan_run


def run(config, out, on_progress=lambda progress: None, **options):
    """Plan a run and do what is left of it."""
    return runs.run(plan_run(config, out), on_progress, **options)


def examine(env, policy, episode, exam=None, *, seed=0, privileged=None, announce=None, key=None):
    """Let a policy take one episode, and return its result."""
    job = RunJob(
        policy="",
        seed=seed,
        privileged=bool(type(policy).privileged) if privileged is None else privileged,
        agent_id_key=draw_key() if key is None else key,
    )
    examiner = Examiner(env, policy, exam or VlnExam(), job)
    return examiner.examine(episode, announce).result


def finished(folder):
    """Return the finished episodes of a run folder by id."""
    return {result.episode_id: result for result in RunFolder.open(folder).episodes}
