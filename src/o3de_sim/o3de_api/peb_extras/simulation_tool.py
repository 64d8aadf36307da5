"""Game mode and physics in the Editor, without an agent in hand."""

from __future__ import annotations

from o3de_sim.o3de_api.peb_extras.default_agent import lent_agent


def enter_game_mode(timeout_s: float | None = None) -> None:
    """Let the level live: physics runs, ROS 2 speaks. Returns when it does."""
    with lent_agent() as agent:
        agent.simulation_tool.enter_game_mode(timeout_s)


def exit_game_mode(timeout_s: float | None = None) -> None:
    """Go back to editing: the level is again what it was. Returns when it is."""
    with lent_agent() as agent:
        agent.simulation_tool.exit_game_mode(timeout_s)


def is_in_game_mode() -> bool:
    """Return whether the level lives."""
    with lent_agent() as agent:
        return agent.simulation_tool.is_in_game_mode()


def toggle_physics(enabled: bool) -> None:  # noqa: FBT001 - the documents call it so
    """Let physics run or rest while editing. In game mode it runs anyway."""
    with lent_agent() as agent:
        agent.simulation_tool.toggle_physics(enabled)
