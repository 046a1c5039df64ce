"""An AI data analyst that lives in Jupyter."""

__version__ = "0.1.0"
