"""The exam itself. Start reading at rollout.py."""
