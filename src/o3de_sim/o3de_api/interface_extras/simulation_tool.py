"""Game mode and physics in the Editor."""

from __future__ import annotations

from o3de_sim.o3de_api.interface.tool import Tool


class SimulationTool(Tool):
    """The operations `simulation_tool.*`."""

    def enter_game_mode(self, timeout_s: float | None = None) -> None:
        """Let the level live: physics runs, ROS 2 speaks. Returns when it does."""
        self._call("simulation_tool.enter_game_mode", {}, timeout_s)

    def exit_game_mode(self, timeout_s: float | None = None) -> None:
        """Go back to editing: the level is again what it was. Returns when it is."""
        self._call("simulation_tool.exit_game_mode", {}, timeout_s)

    def is_in_game_mode(self) -> bool:
        """Return whether the level lives."""
        return bool(self._call("simulation_tool.is_in_game_mode", {}))

    def toggle_physics(self, enabled: bool) -> None:  # noqa: FBT001 - the documents call it so
        """Let physics run or rest while editing. In game mode it runs anyway."""
        self._call("simulation_tool.toggle_physics", {"enabled": enabled})
