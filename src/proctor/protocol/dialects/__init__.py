"""The languages that agents speak: Proctor's own, and those of other policy servers."""
