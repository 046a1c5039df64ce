"""Which names a kernel may not give to files, and which a person is told about."""

from pathlib import PurePath

import pytest

from kernel_sandbox.names import carries_code, hidden_module, is_code, is_obeyed


@pytest.mark.parametrize(
    "name",
    [
        *(".git", ".envrc", ".vscode", "conftest.py", "Makefile", "GNUmakefile", "makefile"),
        *(
            "sitecustomize.py",
            "x.pth",
            "MAKEFILE",
            ".bashrc",
            "pyproject.toml",
            "ipython_config.py",
        ),
        *("matplotlibrc", ".pdbrc", ".pylintrc", "pylintrc", "mypy.ini", ".coveragerc", ".flake8"),
        *(".gitlab-ci.yml", ".github", ".circleci", "Jenkinsfile", "compose.yaml", "Dockerfile"),
        *(".Rprofile", ".Renviron", ".RData", "CLAUDE.md", "AGENTS.md", ".cursor", ".mcp.json"),
        *("jupyter_server_config.json", "jupyter_nbconvert_config.py", "jupyter_config.json"),
        *("x.egg-info", "planted-1.0.dist-info", "x.code-workspace"),
    ],
)
def test_programs_obey_these_unasked(name):
    assert is_obeyed(name)


@pytest.mark.parametrize(
    "name",
    ["sales.csv", "git", "env", "make.csv", "config.json", ".hidden", "github", "agents.csv"],
)
def test_programs_do_not_obey_these(name):
    assert not is_obeyed(name)


@pytest.mark.parametrize(
    ("place", "module"),
    [
        ("polars.py", "polars"),
        ("sub/random.py", "random"),
        ("numpy.so", "numpy"),
        ("json.abi3.so", "json"),
        ("pandas/__init__.py", "pandas"),
        ("sub/pytest.pyc", "pytest"),
        ("analysis_of_mine.py", ""),
        ("pandas/data.csv", ""),
        ("pandas.csv", ""),
        ("__init__.py", ""),
        (".py", ""),
        ("a.b.py", ""),
    ],
)
def test_a_module_that_hides_another_is_named(place, module):
    assert hidden_module(PurePath(place)) == module


def test_programs_and_data_that_runs_code():
    assert [is_code(x) for x in ("a.py", "A.SH", "x.ipynb", "a.csv", "py")] == [True] * 3 + [
        False
    ] * 2
    assert [carries_code(x) for x in ("a.html", "m.PKL", "a.csv")] == [True, True, False]
