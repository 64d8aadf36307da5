"""An O3DE Editor without the engine: its Python calls, and the embedded world as its game mode."""
