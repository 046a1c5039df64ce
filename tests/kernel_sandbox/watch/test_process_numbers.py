"""The numbers of real processes."""

import os
import subprocess
import sys

from kernel_sandbox.watch.process_tree import children_here, number_inside, number_outside


def test_a_child_has_one_number_where_all_share_a_namespace() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        handle = os.pidfd_open(child.pid)
        assert number_outside(handle) == child.pid
        assert number_inside(child.pid) == child.pid
        assert child.pid in children_here()
        child.communicate(b"\n")
        os.close(handle)
    assert number_inside(child.pid) is None
    assert child.pid not in children_here()
