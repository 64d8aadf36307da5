"""An exam as somebody else would write it: only what has no default."""

from types import MappingProxyType

import msgspec

from proctor.exams.exam import Exam
from proctor.exams.findings import Finding, found


class FetchEpisode(msgspec.Struct, frozen=True):
    episode_id: str
    weight_kg: float
    scene_id: str = "room"
    instruction: str = "Fetch it."
    step_limit: int = 5
    language: str = "en"
    split: str | None = None


class FetchState(msgspec.Struct, frozen=True):
    is_held: bool = False


class FetchExam(Exam[FetchEpisode, str, FetchState]):
    name = "fetch"
    episode = FetchEpisode
    state_type = FetchState
    envs = ("mock",)
    metrics = ()
    filters = MappingProxyType({"heavy": "more than 10 kg"})

    def check(self, given):
        heavy = [index for index, episode in given.episodes.items() if episode.weight_kg > 10]
        yield from found("note", "heavy", f"{len(heavy)} of {len(given.episodes)} are heavy", heavy)
        lost = [index for index, episode in given.episodes.items() if episode.weight_kg > 100]
        yield from found("error", "too-heavy", "nobody can lift it", lost, remedy="dropped")
        if all(episode.split is None for episode in given.episodes.values()):
            yield Finding(severity="note", kind="no-split", text="there are no splits")

    def parse_action(self, answer):
        return str(answer)

    def state(self, info):
        return FetchState()

    def record(self, episode, trace, distance):
        return {"trajectory": [], "final_distance_to_goal": 0.0}
