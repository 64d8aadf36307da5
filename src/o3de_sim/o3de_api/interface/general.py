"""What belongs to no other tool."""

from __future__ import annotations

from o3de_sim.o3de_api.interface.tool import Tool


class GeneralTool(Tool):
    """The operations `general.*`."""

    def wait_for_propagation(self, frames: int = 1, timeout_s: float | None = None) -> None:
        """Wait until the engine has drawn so many more frames: what was changed is then so everywhere."""
        self._call("general.wait_for_propagation", {"frames": frames}, timeout_s)
