"""What every ROS 2 node of ours needs: context, topics, quality of service, clocks, conversions."""
