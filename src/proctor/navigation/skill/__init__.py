"""Skills that agents and baselines can call: `navigate_to`."""
