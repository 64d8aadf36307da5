"""The tools `simulation_tool` and `ros2_tool` as plain functions, on an agent of their own."""
