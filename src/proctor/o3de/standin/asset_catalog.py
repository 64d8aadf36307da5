"""What the Asset Processor would have made of a project's files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

MODEL_SUFFIXES = (".fbx", ".stl", ".gltf", ".glb", ".obj", ".usd", ".usda", ".usdc", ".usdz")
PRIMITIVES = {
    f"objects/_primitives/_{shape}_1x1.fbx.azmodel": shape for shape in ("box", "sphere", "cylinder")
}
"""Of the engine's gem PrimitiveAssets: one metre each way, around their centres."""


class AssetCatalog:
    """Finds products by their paths, which are those of their sources in lower case with a suffix.

    Args:
        project: The project's folder.
    """

    def __init__(self, project: Path) -> None:
        self.project = project

    def has(self, product: str) -> bool:
        """Return whether there is a product of this path."""
        return product in PRIMITIVES or self.source_of(product) is not None

    def source_of(self, product: str) -> Path | None:
        """Return the file in the project that a product is made of."""
        if product != product.lower():  # the catalog's paths are in lower case
            return None
        name = PurePosixPath(product.replace("\\", "/"))
        if name.suffix == ".azmodel":
            source = name.with_suffix("")
            return self._file(source) if source.suffix in MODEL_SUFFIXES else None
        if name.suffix == ".pxmesh":  # is only made where the file's settings ask for it
            source = name.with_suffix("")
            return None if self._file(PurePosixPath(f"{source}.assetinfo")) is None else self._file(source)
        if name.suffix == ".spawnable":
            return self._file(name.with_suffix(".prefab"))
        return None

    def _file(self, lower: PurePosixPath) -> Path | None:
        """Return the file whose path is this one in lower case."""
        if lower.is_absolute() or ".." in lower.parts:
            return None
        place = self.project
        for part in lower.parts:
            exact = place / part
            if exact.exists():
                place = exact
                continue
            if not place.is_dir():
                return None
            found = next((item for item in place.iterdir() if item.name.lower() == part), None)
            if found is None:
                return None
            place = found
        return place if place.is_file() else None
