"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("project", deadline=None)  # a slow machine is no failure
settings.load_profile("project")
