"""The data files below the server's root: listed, found, named in questions."""
