import pytest

from dm_jupyter.core.addresses import shown_address


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
