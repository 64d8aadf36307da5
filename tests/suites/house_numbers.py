"""Reads back the number that `numbered` hides in the millimetres of a floor plan."""

from proctor.scenes.houses import BASE, DOORS


def number_of(plan):
    lengths = [plan.outline.x1, plan.outline.y1]
    lengths += [door.x if door.along == "x" else door.y for door in plan.doors[:DOORS]]
    return sum(round(length * 1000) % BASE * BASE**place for place, length in enumerate(lengths))
