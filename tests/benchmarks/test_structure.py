"""What is counted of a tree of files."""

from benchmarks.structure import layout_of

SMALL = "x = 1\n"


def _methods(count: int) -> str:
    return "class A:\n" + "".join(f"    def m{n}(self):\n        pass\n" for n in range(count))


def test_folders_and_files_in_a_circle_are_found() -> None:
    found = layout_of({
        "p/__init__.py": "",
        "p/a/__init__.py": "",
        "p/b/__init__.py": "",
        "p/a/x.py": "from p.b import y\n",
        "p/b/y.py": "from p.a.z import one\n",
        "p/a/z.py": "from p.a.w import two\none = 1\n",
        "p/a/w.py": "import p.a.z\ntwo = 2\n",
    })  # fmt: skip
    assert found.folder_circles == ["p.a and p.b"]
    assert found.file_circles == ["p.a.w > p.a.z"]
    assert len(found.lines) == 4


def test_what_only_type_checkers_load_or_a_call_loads_is_no_circle() -> None:
    lazy = "if TYPE_CHECKING:\n    import p.b\ndef f():\n    import p.b\n"
    found = layout_of({"p/__init__.py": "", "p/a.py": lazy, "p/b.py": "import p.a\n"})
    assert found.file_circles == []


def test_small_files_with_one_importer_and_long_ones_are_named() -> None:
    found = layout_of({
        "p/__init__.py": "",
        "p/small.py": SMALL,
        "p/shared.py": SMALL,
        "p/long.py": SMALL * 501 + "import p.small\nimport p.shared\n",
        "p/other.py": "import p.shared\n" * 80,
    })  # fmt: skip
    assert found.small_files == ["p.small"]
    assert found.long_files == ["p.long"]


def test_only_methods_beyond_the_wall_count_and_special_ones_do_not() -> None:
    special = "    def __init__(self):\n        pass\n"
    found = layout_of({"p/a.py": _methods(15) + special, "p/b.py": _methods(16)})
    assert found.large_classes == ["p.b.A (16 methods)"]


def test_a_public_name_that_is_only_passed_on_is_no_double() -> None:
    own = "__all__ = ['one']\ndef one():\n    pass\n"
    found = layout_of({
        "p/a.py": own,
        "p/b.py": own.replace("def one():\n    pass", "one: int = 2"),
        "p/c.py": "from p.a import one\n__all__ = ['one']\n",
        "p/d.py": "def one():\n    pass\n",
        "p/e.py": "__all__ = ['main']\ndef main():\n    pass\n",
        "p/f.py": "__all__ = ['main']\ndef main():\n    pass\n",
    })  # fmt: skip
    assert found.double_names == ["one: p.a, p.b"]
