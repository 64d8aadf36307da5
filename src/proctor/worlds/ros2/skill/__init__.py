"""`navigate_to` for ROS 2 clients: skill server, planning actions, controller node."""
