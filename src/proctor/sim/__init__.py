"""The embedded world. MuJoCo is imported here and nowhere else."""
