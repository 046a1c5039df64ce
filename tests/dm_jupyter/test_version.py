import json
from pathlib import Path

import dm_jupyter


def test_the_side_panel_has_the_version_of_the_package() -> None:
    package = json.loads((Path(__file__).parents[2] / "package.json").read_text())
    assert package["version"] == dm_jupyter.__version__
