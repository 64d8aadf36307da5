"""A policy that waits forever in its third episode, and says so, if the variable HANGS names a file."""

import os
import threading
from pathlib import Path

from talking_policy import TalkingPolicy


class HangsInTheThird(TalkingPolicy):
    episodes = 0

    def reset(self, episode_info):
        super().reset(episode_info)
        self.episodes += 1
        if self.episodes == 3 and "HANGS" in os.environ:
            Path(os.environ["HANGS"]).touch()
            threading.Event().wait()
