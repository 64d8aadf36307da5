"""Pictures of a MuJoCo model."""
