import subprocess
import sys

HEAVY = ("pandas", "torch", "jupyter_server", "openai", "jupyter_client")


def test_importing_the_package_and_its_command_line_is_light() -> None:
    code = (
        "import sys, dm_jupyter, dm_jupyter.cli; "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
