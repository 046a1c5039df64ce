import pytest

from dm_jupyter.core.plain_text import is_on_this_machine, shown_address, shown_host


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://host:8000/v1", "http://host:8000/v1"),
        ("http://bob:s3cret@host:8000/v1", "http://host:8000/v1"),
        ("http://s3cret@host/v1", "http://host/v1"),
        ("http://bob:s3@cret@host/v1", "http://host/v1"),
        ("HTTPS://host/v1?key=s3cret#s3cret", "HTTPS://host/v1"),
        ("bob:s3cret@host/v1", "host/v1"),
        ("https://host/@team/v1", "https://host/@team/v1"),
        ("http://bob:s3cret@[::1]:80/v1\n", "http://[::1]:80/v1\n"),
        ("http://bob:s3cret@[bad", "http://[bad"),
        ("", ""),
    ],
)
def test_nothing_secret_is_shown(url: str, shown: str) -> None:
    assert shown_address(url) == shown


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://bob:s3cret@host:8000/v1?key=s3cret", "host:8000"),
        ("http://[::1]:80", "[::1]:80"),
        ("", ""),
    ],
)
def test_the_host_is_shown_alone(url: str, host: str) -> None:
    assert shown_host(url) == host


@pytest.mark.parametrize(
    ("url", "stays"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://user:secret@127.3.2.1/v1", True),
        ("https://api.example.com/v1", False),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://127.0.0.1@example.com/v1", False),
        ("http://192.168.1.4:8000/v1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_what_stays_on_this_machine_is_told_from_the_address(url: str, stays: bool) -> None:
    assert is_on_this_machine(url) is stays
