"""Checks on batches of data, as Great Expectations suites: the guard before anything is concluded from them.

``suite`` runs one and writes its data docs; the other modules hold what each kind of batch must be.
"""
