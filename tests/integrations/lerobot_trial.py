"""Run by the Python of a venv with LeRobot: its own rollout of a policy that replays actions.

lerobot_trial.py ENV_FILE ROWS_JSON: the file is the `env.py` of an EnvHub repository.
"""

import json
import sys

import torch
from lerobot.envs import utils
from lerobot.scripts.lerobot_eval import rollout

module = utils._load_module_from_path(sys.argv[1])
envs = utils._normalize_hub_result(utils._call_make_env(module, n_envs=2, use_async_envs=False, cfg=None))
((suite, vectors),) = envs.items()
rows, seen = torch.tensor(json.loads(sys.argv[2])), []


class Replay(torch.nn.Module):
    def reset(self):
        self.step = 0

    def select_action(self, observation):
        seen.append({key: list(getattr(value, "shape", value)) for key, value in observation.items()})
        row, self.step = rows[self.step], self.step + 1
        return row.repeat(2, 1)


def same(value):
    return value


rollouts = [rollout(vectors[0], Replay(), same, same, same, same, seeds=[0, 1]) for _ in range(2)]
utils.close_envs(envs)
found = [{key: value[key].tolist() for key in ("success", "done", "reward")} for value in rollouts]
json.dump({"suite": suite, "seen": seen[0], "rollouts": found}, sys.stdout, default=str)
