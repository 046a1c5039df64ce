"""The Jupyter server extension: runs of the agent in the notebooks that people have open."""
