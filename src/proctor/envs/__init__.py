"""Earlier import names, kept for one version: see `proctor.worlds`."""
