"""The same world behind Gymnasium's interface.

Run it from the repository: .venv/bin/python examples/04_gymnasium.py
"""

import gymnasium

env = gymnasium.make("proctor.worlds.gymnasium:proctor/VLN-v0", dataset="houses-v1", width=160, height=120)
observation, info = env.reset(seed=0)
print(observation["instruction"])
for action in (1, 1, 2, 1, 0):  # FORWARD, FORWARD, LEFT, FORWARD, STOP
    observation, reward, terminated, truncated, info = env.step(action)
    ahead = f"{info['distance_to_goal']:.2f} m from the goal in a straight line"
    print(f"step {info['step']}: rgb {observation['rgb'].shape}, {ahead}")
env.close()
