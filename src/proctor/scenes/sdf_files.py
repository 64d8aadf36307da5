"""Files of SDF worlds: where models and meshes are looked for, and what an <include> stands for.

Only files in the folders of models are ever read. Models of Gazebo Fuel are found by their name, as they lie
in Gazebo's cache or in a folder of models; nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

from proctor.core.errors import InvalidFile, did_you_mean
from proctor.scenes.xml_file import XmlElement, read_xml

RESOURCE_PATHS = (
    "GZ_SIM_RESOURCE_PATH",
    "IGN_GAZEBO_RESOURCE_PATH",
    "GAZEBO_MODEL_PATH",
    "GAZEBO_RESOURCE_PATH",
    "GZ_FUEL_CACHE_PATH",
)
FUEL_CACHES = ("~/.gz/fuel", "~/.ignition/fuel")
BUILT_IN = Path(__file__).with_name("gazebo_models")
FUEL = re.compile(
    r"(?:https?|fuel)://(?P<server>[^/]+)/(?:[\d.]+/)?(?P<owner>[^/]+)/models/(?P<name>[^/]+)"
    r"(?:/(?:\d+|tip))?(?:/files)?(?:/(?P<inner>.*))?"
)
NEWEST_VERSION = (1, 12)
OUTSIDE = "'{}' lies outside of the folders of models: name its folder by --models"


class SdfFiles:
    """Finds and reads the files that a world names. What is not there is noted in `missing`."""

    def __init__(self, world: Path, models: Sequence[Path], left_out: dict[str, list[str]]) -> None:
        self.missing: dict[str, tuple[XmlElement, str]] = {}  # by address: what names it first, and a hint
        self._folders = _model_folders(world.resolve().parent, models)
        self._left_out = left_out
        self._included: dict[tuple[Path, str], XmlElement | None] = {}

    def read(self, file: Path) -> XmlElement:
        """Return the root of an SDF file."""
        root = read_xml(file)
        if root.tag != "sdf":
            raise root.error("expected <sdf>: not a world or model of Gazebo")
        version = root.attributes.get("version", "1.0")
        if re.fullmatch(r"\d{1,4}(\.\d{1,4})*", version) is None:
            raise root.error(f'expected version="1.9" or another number, found "{version[:80]}"')
        if tuple(_version(version)) > NEWEST_VERSION:
            newest = ".".join(map(str, NEWEST_VERSION))
            self._left_out[f"what is new in SDF {version}: versions up to {newest} are known"].append(
                file.name
            )
        return root

    def included(self, element: XmlElement, files: tuple[Path, ...]) -> XmlElement | None:
        """Return the <model> or <light> that an <include> names, None if it is missing or an actor.

        `files` are those that lead to this <include>.
        """
        key = (element.file, element.text_of("uri"))
        if key not in self._included:
            self._included[key] = self._open(element, key[1])
        child = self._included[key]
        if child is not None and child.file in files:
            chain = " includes ".join(f"'{each.parent.name}/{each.name}'" for each in (*files, child.file))
            raise element.error(f"a cycle: {chain}")
        return child

    def _open(self, element: XmlElement, uri: str) -> XmlElement | None:
        found = self.find(element, uri)
        if found is None:
            return None
        file = (found / self._file_of_model(found)).resolve() if found.is_dir() else found
        if not file.is_file():
            self.missing[uri] = element, f" ({found} has no {file.name})"
            return None
        if not self._may_read(file):
            raise element.error(OUTSIDE.format(uri))
        root = self.read(file)
        child = next(root.all("model", "light", "actor"), None)
        if child is None:
            raise root.error("expected a <model> in it")
        if child.tag == "actor":
            self._left_out["actors"].append(child.name)
            return None
        return child

    def find(self, element: XmlElement, uri: str) -> Path | None:
        """Return the file or folder of an address, which must lie in a folder of models; None if missing."""
        longest = max(len(part.encode()) for part in unquote(uri).split("/"))  # file systems count bytes
        if not uri or "\0" in unquote(uri) or len(uri.encode()) > 1024 or longest > 255:
            raise element.error(f"expected <uri> with an address such as model://NAME, found '{uri[:80]}'")
        outside = False
        for place in self._places(element.file.resolve().parent, uri):
            found = place.resolve()
            if found.exists():
                if self._may_read(found):
                    return found
                outside = True
        if outside:
            raise element.error(OUTSIDE.format(uri))
        if uri not in self.missing:
            self.missing[uri] = element, self._hint(uri)
        return None

    def _may_read(self, file: Path) -> bool:
        return any(file.is_relative_to(folder) for folder in (*self._folders, BUILT_IN))

    def _places(self, beside: Path, uri: str) -> Iterator[Path]:
        """Yield where an address may lie."""
        scheme, _, rest = uri.partition("://")
        fuel = FUEL.fullmatch(unquote(uri))
        if fuel is not None:
            server, owner, name, inner = fuel.group("server", "owner", "name", "inner")
            below = Path(server, owner.lower(), "models", name.lower())  # as in Gazebo's cache
            for folder in (*self._folders, BUILT_IN):
                for place in (Path(name), Path(name.lower().replace(" ", "_")), below):
                    yield _newest(folder / place) / (inner or "")
            return
        if not rest or scheme == "file":
            yield beside / unquote(rest or uri)
        for folder in (*self._folders, BUILT_IN):
            yield folder / unquote(rest or uri)

    def _hint(self, uri: str) -> str:
        fuel = FUEL.fullmatch(unquote(uri))
        if fuel is not None:
            return f" (of Gazebo Fuel: download it to DIR/{fuel['name']} and give --models DIR)"
        head, _, inner = unquote(uri.partition("://")[2] or uri).partition("/")
        models = {each.name: each for folder in self._folders for each in folder.iterdir() if each.is_dir()}
        if inner and head in models:
            return f" ({models[head]} has no {inner})"
        return did_you_mean(head, models)

    def refuse_missing(self) -> None:
        """Raise InvalidFile that names everything that is missing, if anything is."""
        if not self.missing:
            return
        found = [f"'{uri}'{hint}" for uri, (_, hint) in self.missing.items()]
        many = "not found" if len(found) == 1 else f"{len(found)} models or meshes were not found"
        first, _ = next(iter(self.missing.values()))
        searched = ", ".join(map(str, self._folders))
        advice = "--models DIR adds a folder, --skip-missing leaves out what is missing"
        raise first.error(f"{many}: {', '.join(found)}; looked in {searched} ({advice})")

    def _file_of_model(self, folder: Path) -> str:
        """Return the name of a model's SDF file: the newest that its model.config names, or model.sdf."""
        config = folder / "model.config"
        if not config.is_file():
            return "model.sdf"
        try:
            files = read_xml(config).all("sdf")
        except InvalidFile as error:
            self._left_out["model.config that cannot be read: model.sdf is taken"].append(str(error))
            return "model.sdf"
        newest = max(files, key=lambda file: _version(file.attributes.get("version", "")), default=None)
        name = "model.sdf" if newest is None else newest.text.strip()
        if not name or Path(name).name != name:
            raise InvalidFile(config, f"expected <sdf> that names a file beside it, found '{name[:80]}'")
        return name


def _version(text: str) -> list[int]:
    return [int(part) for part in text.split(".") if part.isdecimal() and len(part) < 5]


def _newest(folder: Path) -> Path:
    """Return the folder of the newest version of a model, where a folder for each lies in the model's."""
    if (folder / "model.config").exists() or (folder / "model.sdf").exists() or not folder.is_dir():
        return folder
    versions = [each for each in folder.iterdir() if each.name.isdecimal() and each.is_dir()]
    return max(versions, key=lambda each: int(each.name[:9]), default=folder)


def _model_folders(folder: Path, given: Sequence[Path]) -> list[Path]:
    """Return the folders that models and meshes of a world in a folder may lie in: no other is ever read."""
    found = [*given, folder / "models", folder, folder.parent / "models"]
    if (folder / "model.config").is_file() or (folder.parent / "package.xml").is_file():
        found.append(folder.parent)  # of models, or a package of ROS
    paths = [os.environ.get(name, "").split(os.pathsep) for name in RESOURCE_PATHS]
    found += [Path(part) for parts in paths for part in parts if part]
    found += [Path(place).expanduser() for place in FUEL_CACHES]
    return [place.resolve() for place in dict.fromkeys(found) if place.is_dir()]
