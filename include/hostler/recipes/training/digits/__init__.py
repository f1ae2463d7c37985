"""Numpy-only training of a digit classifier, data-parallel over plain sockets."""
