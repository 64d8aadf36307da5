"""Finding a way: grid search, OMPL, and plans of single actions."""
