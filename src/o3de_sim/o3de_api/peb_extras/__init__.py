"""The tools of `interface_extras` as plain functions, on an agent of their own."""
