"""What the screen refuses, what it lets through, and that no text upsets it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_sandbox.cells.screen import screen
from tests.examples import examples

REFUSED = {
    "input('name?')": "input()",
    "import os\nos.system('ls')": "os.system()",
    "import os as o\no.system('ls')": "os.system()",
    "from os import system as run\nrun('ls')": "os.system()",
    "from os import popen\npopen('ls').read()": "os.popen()",
    "import os.path\nos.fork()": "os.fork()",
    "import os\nos.execvp('ls', ['ls'])": "os.execvp()",
    "import os\nos.posix_spawn('/bin/ls', ['ls'], {})": "os.posix_spawn()",
    "import os\nos.kill(1, 9)": "os.kill()",
    "import os, signal\nos.killpg(0, signal.SIGKILL)": "os.killpg()",
    "import subprocess\nsubprocess.run(['ls'])": "subprocess.run()",
    "import subprocess as sp\nsp.check_output('ls', shell=True)": "subprocess.check_output()",
    "from subprocess import Popen\nPopen('ls')": "subprocess.Popen()",
    "import ctypes\nctypes.CDLL(None)": "ctypes.CDLL()",
    "import shutil\nshutil.rmtree('/')": "shutil.rmtree()",
    "import sys\nsys.exit(1)": "sys.exit()",
    "exit()": "exit()",
    "quit()": "quit()",
    "breakpoint()": "breakpoint()",
    "__import__('os').system('ls')": "os.system()",
    "import importlib\nimportlib.import_module('subprocess').run('ls')": "subprocess.run()",
    "import os\ngetattr(os, 'system')('ls')": "os.system()",
    "exec('import os; os.system(\"ls\")')": "os.system()",
    "eval(text)": "eval() of text",
    "import builtins\nbuiltins.exec(text)": "exec() of text",
    "import builtins\nbuiltins.input('x')": "input()",
    "!ls -la": "a shell command (!)",
    "files = !ls": "a shell command (!)",
    "if True:\n    !rm -rf /": "a shell command (!)",
    "get_ipython().system('ls')": "a shell command (!)",
    "get_ipython().getoutput('ls')": "a shell command (!)",
    "%%bash\nls": "%%bash",
    "%%sh\nls": "%%sh",
    "%%script perl\nprint 1": "%%script",
    "%sx ls": "%sx",
    "%pip install x": "%pip",
    "%conda install x": "%conda",
    "%time import os; os.system('ls')": "os.system()",
    "%%time\nx = 1\nimport os\nos.system('ls')": "os.system()",
    "%%capture out\n!ls": "a shell command (!)",
    "get_ipython().run_cell_magic('bash', '', 'ls')": "%%bash",
    "async def f():\n    input()": "input()",
    "df.apply(lambda r: __import__('os').system(r))": "os.system()",
}

ALLOWED = [
    "",
    "open('a.csv').read()\nopen('b.csv', 'w').write('x')",
    "import os\nprint(os.listdir('.'), os.path.join('a', 'b'), os.getcwd(), os.environ)",
    "import glob, pathlib\nglob.glob('*.csv'); pathlib.Path('x').unlink()",
    "df.query('a > 1'); df.eval('a + b'); pd.eval('1 + 1')",
    "import ast\nast.literal_eval('[1]')",
    "eval('1 + 1')",
    "model.eval()",
    "import re\nre.compile('x')",
    "%matplotlib inline\nx = 1",
    "%time x = 1",
    "%%timeit\nsum(range(10))",
    "%%html\n<b>no python here</b>",
    "%config InlineBackend.figure_format = 'retina'",
    "df?",
    "def exit():\n    pass\nexit()",
    "from mytools import system\nsystem('x')",
    "import os.path as p\np.exists('x')",
    "x = '''\n!ls\n%%bash\n'''",
    "x = (10\n%3)",
    "for",
    "input_data = 1\nself.input()",
    "'\\d'",
    "import subprocess",
    "await something()",
    "run_line_magic('bash', 'x')",
    "(lambda f: f)(print)('x')",
    "functions[0]('x')",
    "get_ipython().run_line_magic(name, text)",
    "from . import os",
    "eval('eval(\\'eval(\"1\")\\')')",
]


@pytest.mark.parametrize(("source", "call"), REFUSED.items())
def test_refused(source, call):
    refusal = screen(source)
    assert refusal is not None
    assert refusal.call.startswith(call)
    assert f"line {refusal.line}" in refusal.message
    assert refusal.remedy in refusal.message


@pytest.mark.parametrize("source", ALLOWED)
def test_allowed(source):
    assert screen(source) is None


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\n\ninput()", 3),
        ("%%time\nx = 1\ninput()", 3),
        ("x = 1\n!ls", 2),
        ("x = 1\n%time input()", 2),
        ("exit()\ninput()", 1),
    ],
)
def test_the_first_refused_line_is_named(source, line):
    assert screen(source).line == line


PIECES = st.sampled_from(
    [
        "!",
        "%",
        "%%",
        "%%time\n",
        "?",
        "\n",
        "exec(",
        "'",
        '"',
        ")",
        "os.",
        "x = ",
        "\\",
        "\x00",
        "\t",
    ]
)


@examples(150)
@given(st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=4))).map("".join)))
def test_no_text_upsets_it(text):
    refusal = screen(text)
    assert refusal is None or refusal.message


@pytest.mark.parametrize(
    "text", ["(" * 5000, "-" * 20000 + "1", "a." * 3000 + "b()", "\ud800", "%%time"]
)
def test_extreme_text_upsets_it_neither(text):
    assert screen(text) is None
