"""Where the scene of an episode is found: a scene file, or a mesh."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from proctor.scenes.mesh_files import MESH_SUFFIXES

SCENE_SUFFIXES = (".json", *MESH_SUFFIXES)
"""Of scene files, the preferred ones first: who writes a scene file beside a mesh wants it to be used."""
LONGEST_ID = 255


def find_scene(folder: Path, scene_id: str, *, suffixes: tuple[str, ...] = SCENE_SUFFIXES) -> Path | None:
    """Return the file of a scene, looked for by the customs of the public datasets.

    The id may be a bare name (`17DRP5sb8fy`) or a path (`mp3d/17DRP5sb8fy/17DRP5sb8fy.glb`, also with
    `.basis.glb`). Below the folder that path is tried, then its ends (`17DRP5sb8fy/17DRP5sb8fy.glb`), then
    `<name>/<name>.*` and `<name>.*`. Only files with one of the suffixes are found.

    Returns:
        The file, always inside of the folder, or None.
    """
    path = PurePosixPath(scene_id.replace("\\", "/"))
    if not path.name or ".." in path.parts or "\0" in scene_id or len(scene_id) > LONGEST_ID:
        return None
    root = folder.resolve()
    name = _without_suffixes(path.name)
    parts = path.relative_to("/").parts if path.is_absolute() else path.parts
    stems = [PurePosixPath(*parts[first:]).with_name(name) for first in range(len(parts))]
    stems.insert(-1, PurePosixPath(name, name))
    for stem in dict.fromkeys(stems):
        # What the id itself says comes after a scene file only.
        for suffix in dict.fromkeys((".json", path.name.removeprefix(name), *suffixes)):
            file = root / f"{stem}{suffix}"
            if suffix.lower().endswith(suffixes) and file.is_file() and file.resolve().is_relative_to(root):
                return file
    return None


def _without_suffixes(file_name: str) -> str:
    """Return `x` of `x.basis.glb`, but all of a name that has a dot and is no scene file's."""
    name = PurePosixPath(file_name)
    if name.suffix.lower() not in SCENE_SUFFIXES:
        return file_name
    return name.stem.removesuffix(".basis")
