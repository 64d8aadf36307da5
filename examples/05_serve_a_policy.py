"""An agent of your own on a WebSocket, where an evaluator elsewhere can examine it.

Run it from the repository: .venv/bin/python examples/05_serve_a_policy.py

It serves the agent, plays the evaluator for two actions, and ends. To serve it until Ctrl-C:

    proctor serve-policy my_agent:Agent          from the folder of my_agent.py
    serve(Agent, port=8080)                      from Python

It needs `pip install proctor-eval`, without the simulator.
"""

import json

from websockets.sync.client import connect

from proctor.agents.server import PolicyServer
from proctor.core.interfaces import Policy
from proctor.core.types import Action, EpisodeInfo, Observation


class Agent(Policy):
    """Goes ahead while there is room and stops in front of a wall. Every session has one of its own."""

    def reset(self, episode_info: EpisodeInfo) -> None:
        """Read the instruction."""
        print(f"agent:     I was told: {episode_info.instruction}")

    def act(self, observation: Observation) -> Action:
        """Look at the depth image."""
        return Action.FORWARD if observation["depth"].min() > 500 else Action.STOP


def take_exam(url: str) -> None:
    """Send what an evaluator sends, in JSON, and print what comes back."""
    with connect(url) as agent:
        reset = {
            "type": "reset_episode",
            "session_id": "example",
            "episode": {"episode_id": "corridor", "instruction": {"text": "Go to the end of the corridor."}},
            "observation_format": {"depth": {"dtype": "uint16", "shape": [2, 2], "encoding": "list"}},
        }
        agent.send(json.dumps(reset))
        for depth_mm in (3000, 400):
            observation = {"depth": [[depth_mm, depth_mm], [depth_mm, depth_mm]]}
            ask = {"type": "get_action", "session_id": "example", "observation": observation}
            agent.send(json.dumps(ask))
            action = Action(json.loads(agent.recv())["action"])
            print(f"evaluator: with a wall {depth_mm} mm ahead, it wants to {action.name}")


if __name__ == "__main__":
    with PolicyServer(Agent, port=0) as server:
        print(f"agent:     served at {server.url}")
        take_exam(server.url)
