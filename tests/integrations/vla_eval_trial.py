"""Run by the Python of a venv with vla-eval: a model server replays actions, and what it was told is printed.

vla_eval_trial.py EPISODE_FILE ROWS_JSON
"""

import json
import sys

import numpy as np
from vla_eval.api import evaluate
from vla_eval.model_servers.base import ModelServer
from vla_eval.specs import DimSpec

file, rows = sys.argv[1], json.loads(sys.argv[2])
heard = {"tasks": [], "keys": []}


class Replay(ModelServer):
    async def on_episode_start(self, config, ctx):
        heard["tasks"].append(config["task"])

    async def on_observation(self, obs, ctx):
        images = {name: list(picture.shape) for name, picture in obs["images"].items()}
        heard["keys"].append([sorted(obs), images])
        await ctx.send_action({"actions": np.array(rows[ctx.step], np.float32)})

    def get_action_spec(self):
        kind = "proctor_index" if len(rows[0]) == 1 else "proctor_joint_position"
        return {"actions": DimSpec("actions", len(rows[0]), kind)}

    def get_observation_spec(self):
        return {}


benchmark = "proctor.integrations.vla_eval:ProctorBenchmark"
config = {"benchmarks": [{"benchmark": benchmark, "episodes_per_task": 1, "params": {"suite": file}}]}
(result,) = evaluate(Replay(), config, docker=False, no_save=True)
json.dump({"heard": heard, "result": result}, sys.stdout, default=str)
