"""What an agent is asked to do, and the files that say so."""
