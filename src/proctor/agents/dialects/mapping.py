"""Which of our observation's entries go under which of a policy server's keys, and what its numbers mean."""

from __future__ import annotations

from collections.abc import Mapping as Map
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from proctor.core.documents import convert, read_json
from proctor.core.errors import UserError, did_you_mean
from proctor.core.types import Observation

Foreign: TypeAlias = Literal["openpi", "vla-eval"]
Kind: TypeAlias = Literal["index", "scores", "joint_position", "ee_pose_target"]
Entries: TypeAlias = Annotated[dict[str, str | dict[str, str]], msgspec.Meta(min_length=1)]
Pixels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]

INSTRUCTION = "instruction"
"""The name of the instruction's text among the entries of an observation."""
KINDS: dict[str, tuple[Kind, ...]] = {
    "vln": ("index", "scores"),
    "pick_and_place": ("joint_position", "ee_pose_target"),
}
DEFAULTS: dict[tuple[str, str], Entries] = {
    ("openpi", "vln"): {"observation/image": "rgb", "prompt": INSTRUCTION},
    ("openpi", "pick_and_place"): {
        "observation/image": "rgb_head",
        "observation/wrist_image": "rgb_wrist",
        "observation/state": "qpos",
        "prompt": INSTRUCTION,
    },
    ("vla-eval", "vln"): {"images": {"head": "rgb"}, "task_description": INSTRUCTION},
    ("vla-eval", "pick_and_place"): {
        "images": {"head": "rgb_head", "wrist": "rgb_wrist"},
        "states": "qpos",
        "task_description": INSTRUCTION,
    },
}
DEFAULT_SIZES: dict[str, dict[str, tuple[int, int]]] = {
    # What the models of openpi see in the end; its own clients scale before they send, too.
    "openpi": {"rgb": (224, 224), "rgb_head": (224, 224), "rgb_wrist": (224, 224)},
    "vla-eval": {},
}


class ActionMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the numbers of a reply mean."""

    key: str = "actions"
    """Where in the reply they are."""
    kind: Kind | None = None
    """None: `index` in VLN; by their number in pick-and-place."""
    chunk: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """How many rows of a reply to do before asking again."""


class Mapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a policy server's words translate. What is left out is as the server's own examples have it."""

    observation: Entries | None = None
    """The server's key -> our entry. A map in it is a map in what is sent."""
    resize: dict[str, tuple[Pixels, Pixels]] | None = None
    """Our entry -> (height, width) to fit its picture into, padded with black. `{}`: as it is."""
    action: ActionMapping = ActionMapping()

    def completed(self, dialect: Foreign, task: str) -> Mapping:
        """Return it with nothing left out.

        Raises:
            UserError: It does not fit the task.
        """
        if self.action.kind not in (None, *KINDS.get(task, (self.action.kind,))):
            kinds = " or ".join(f"'{kind}'" for kind in KINDS[task])
            raise UserError(f"mapping: action.kind is '{self.action.kind}', but in {task} it must be {kinds}")
        observation = self.observation or DEFAULTS.get((dialect, task))
        if observation is None:
            raise UserError(f"mapping: expected the key 'observation', as the task '{task}' has no defaults")
        sources = set(_sources(observation))
        for name in self.resize or {}:
            if name not in sources:
                known = f"; 'observation' takes: {', '.join(sorted(sources))}"
                raise UserError(
                    f"mapping: unknown entry '{name}' in 'resize'{did_you_mean(name, sources)}{known}"
                )
        resize = DEFAULT_SIZES[dialect] if self.resize is None else self.resize
        return msgspec.structs.replace(self, observation=observation, resize=resize)

    def payload(self, observation: Observation, instruction: str) -> dict[str, Any]:
        """Return an observation in the server's words. The mapping has to be complete.

        Raises:
            UserError: The observation has no such entry.
        """
        entries = {**observation, INSTRUCTION: instruction}
        return {
            key: {inner: self._value(entries, name) for inner, name in source.items()}
            if isinstance(source, dict)
            else self._value(entries, source)
            for key, source in (self.observation or {}).items()
        }

    def _value(self, entries: Map[str, Any], name: str) -> Any:
        if name not in entries:
            known = f"; observations hold: {', '.join(sorted(entries))}"
            raise UserError(
                f"mapping: unknown entry '{name}' in 'observation'{did_you_mean(name, entries)}{known}"
            )
        value = entries[name]
        if isinstance(value, list | tuple):
            value = np.asarray(value)
        return fit(value, *self.resize[name]) if self.resize and name in self.resize else value


def load_mapping(path: Path) -> Mapping:
    """Read a mapping.

    Raises:
        InvalidFile: It is not one.
    """
    return convert(read_json(path), Mapping, path)


def fit(pixels: Any, height: int, width: int) -> NDArray[Any]:
    """Scale a picture to fit a size without changing its proportions, and pad it with zeros.

    Raises:
        UserError: It is no picture.
    """
    if not (isinstance(pixels, np.ndarray) and pixels.ndim in (2, 3)):
        raise UserError("mapping: 'resize' is for pictures only")
    # Between two depths there may be nothing: only colours are mixed.
    method = Image.Resampling.BILINEAR if pixels.ndim == 3 else Image.Resampling.NEAREST
    return np.asarray(ImageOps.pad(Image.fromarray(pixels), (width, height), method))


def _sources(observation: Entries) -> list[str]:
    found = [value.values() if isinstance(value, dict) else [value] for value in observation.values()]
    return [name for names in found for name in names]
