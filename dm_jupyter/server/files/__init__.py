"""The data files below the server's root: listed, searched, named in questions."""
