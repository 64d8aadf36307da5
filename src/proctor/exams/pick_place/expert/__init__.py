"""The expert baseline: plans a grasp and a place from the ground truth."""
