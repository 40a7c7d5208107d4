"""Small real classes that the tests share. Nothing here patches our own code."""
