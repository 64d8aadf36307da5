import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from policy_servers import briefing

from proctor.agents.dialects.mapping import ActionMapping, Mapping, fit, load_mapping
from proctor.core.errors import InvalidFile, UserError


def load(folder, document):
    path = Path(folder) / "mapping.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return load_mapping(path)


def test_a_mapping_file(tmp_path):
    mapping = load(
        tmp_path,
        {
            "observation": {"cam": "rgb", "depths": {"front": "depth"}, "prompt": "instruction"},
            "resize": {"rgb": [24, 32]},
            "action": {"key": "action", "kind": "scores", "chunk": 4},
        },
    ).completed("openpi", briefing())
    depth = np.full((48, 64), 1500, np.uint16)
    sent = mapping.payload({"rgb": np.zeros((48, 64, 3), np.uint8), "depth": depth, "odom": 1}, "go")
    assert sent.keys() == {"cam", "depths", "prompt"}
    assert sent["cam"].shape == (24, 32, 3)
    assert sent["depths"]["front"] is depth
    assert sent["prompt"] == "go"
    assert mapping.action == ActionMapping(key="action", kind="scores", chunk=4)


def test_the_mapping_of_the_docs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "dialects.md").read_text()
    mapping = load(tmp_path, text.split("```json\n")[1].split("```")[0]).completed("openpi", briefing())
    sent = mapping.payload(
        {"rgb": np.ones((48, 64, 3), np.uint8), "depth": np.ones((48, 64), np.uint16)}, "go"
    )
    assert sent["cameras"]["front"].shape == (256, 256, 3)
    assert sent.keys() == {"cameras", "depth", "prompt"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "empty file"),
        ([], "Expected `object`"),
        ({"observations": {}}, "unknown key 'observations'; did you mean 'observation'"),
        ({"observation": {}}, r"observation: Expected `object` of length >= 1"),
        ({"observation": {"image": 3}}, r"observation\[...\]: Expected `str \| object`"),
        ({"resize": {"rgb": [0, 224]}}, "Expected `int` >= 1"),
        ({"resize": {"rgb": [224]}}, "length 2"),
        ({"action": {"chunk": 0}}, "action.chunk: Expected `int` >= 1"),
        ({"action": {"kind": "delta"}}, "action.kind: Invalid enum value 'delta'"),
        ({"action": {"kinds": "index"}}, "unknown key 'kinds'; did you mean 'kind'"),
    ],
)
def test_files_that_are_no_mapping(tmp_path, document, words):
    with pytest.raises(InvalidFile, match=words) as caught:
        load(tmp_path, document)
    assert str(caught.value).startswith(str(tmp_path / "mapping.json"))


@pytest.mark.parametrize(
    ("mapping", "task", "words"),
    [
        (Mapping(action=ActionMapping(kind="scores")), "pick_and_place", "must be 'joint_position' or"),
        (Mapping(action=ActionMapping(kind="joint_position")), "vln", "'index' or 'scores'"),
        (Mapping(), "dishes", "'dishes' has no defaults for openpi"),
        (Mapping(resize={"rgbb": (9, 9)}), "vln", "'rgbb' in 'resize'; did you mean 'rgb'"),
    ],
)  # fmt: skip
def test_mappings_that_do_not_fit_the_task(mapping, task, words):
    with pytest.raises(UserError, match=words):
        mapping.completed("openpi", briefing(task))


def test_a_task_of_ones_own_needs_a_mapping_only():
    mapping = Mapping(observation={"x": "dirt"}, action=ActionMapping(kind="joint_position"))
    sent = mapping.completed("vla-eval", briefing("dishes")).payload({"dirt": [1, 2]}, "wash")
    np.testing.assert_array_equal(sent["x"], [1, 2])
    assert isinstance(sent["x"], np.ndarray)


def test_only_what_is_left_out_has_defaults():
    mapping = Mapping(observation={"cam": "rgb"}).completed("openpi", briefing())
    assert mapping.observation == {"cam": "rgb"}
    assert mapping.resize["rgb"] == (224, 224)
    assert Mapping(resize={}).completed("openpi", briefing()).resize == {}


def test_a_picture_keeps_its_proportions():
    """The same as openpi's own clients do: scaled by the longer side, the rest black above and below."""
    pixels = np.random.default_rng(1).integers(1, 256, (480, 640, 3), np.uint8)
    found = fit(pixels, 224, 224)
    scaled = np.asarray(Image.fromarray(pixels).resize((224, 168), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(found[28:196], scaled)
    assert not found[:28].any()
    assert not found[196:].any()
    tall = fit(pixels[:, :240], 224, 224)
    assert not tall[:, :56].any()
    assert tall[:, 56:168].all()


def test_a_picture_of_the_right_size_is_left_alone():
    pixels = np.random.default_rng(1).integers(0, 256, (224, 224, 3), np.uint8)
    np.testing.assert_array_equal(fit(pixels, 224, 224), pixels)


def test_depths_are_not_mixed():
    depth = np.where(np.arange(64) < 31, 1000, 5000).astype(np.uint16) * np.ones((64, 1), np.uint16)
    found = fit(depth, 24, 32)
    assert found.dtype == np.uint16
    assert set(np.unique(found)) == {0, 1000, 5000}
    assert found.shape == (24, 32)


@pytest.mark.parametrize("value", [np.zeros(3), "text", 4.0])
def test_only_pictures_are_scaled(value):
    with pytest.raises(UserError, match="pictures only"):
        fit(value, 24, 32)
