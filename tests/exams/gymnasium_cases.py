"""What every Gymnasium env of an exam must do, for the tests of each."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv


def assert_checker_is_content(env):
    """Gymnasium's own checker finds nothing, but that some numbers are metres or have no known limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*space (minimum|maximum) value is -?infinity")
        warnings.filterwarnings("ignore", message=".*we recommend using a symmetric and normalized space")
        check_env(env.unwrapped, skip_render_check=True)


def assert_vector_env_works(env_id, *, action, steps, vector_kwargs, **options):
    """Two workers draw the episodes that their seeds choose, step together, and begin anew by themselves."""
    name = f"proctor.worlds.gymnasium:{env_id}"
    alone = [gymnasium.make(name, **options) for _ in range(2)]
    expected = []
    vector = gymnasium.make_vec(
        name, num_envs=2, vectorization_mode="async", vector_kwargs=vector_kwargs, **options
    )
    assert isinstance(vector, AsyncVectorEnv)
    try:
        seen, _ = vector.reset(seed=[3, 4])
        begun = 2 * [0]
        assert isinstance(seen["instruction"], tuple)
        shown = [list(seen["instruction"])]
        for _ in range(steps):
            seen, rewards, terminated, truncated, _ = vector.step(np.array([action, action]))
            assert rewards.shape == (2,)
            for index in range(2):
                begun[index] += bool(terminated[index] or truncated[index])
            shown.append(list(seen["instruction"]))
        assert min(begun) >= 1, "an episode has ended, and the next one has begun"
    finally:
        vector.close()
    for env, seed in zip(alone, (3, 4), strict=True):
        expected.append(env.reset(seed=seed)[0]["instruction"])
        env.close()
    assert shown[0] == expected
    return {text for texts in shown for text in texts}


def vector_env_texts(folder, env_id, **options):
    """Do the same in a process of its own, as what has drawn pictures cannot be forked; return all texts."""
    script = folder / "vector.py"
    script.write_text(
        "import json\nfrom gymnasium_cases import assert_vector_env_works\n"
        "if __name__ == '__main__':\n"
        f"    print(json.dumps(sorted(assert_vector_env_works({env_id!r}, **{options!r}))))\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))
