"""The node agent: runs jobs that outlive whoever started them, ships their checkpoints and logs, ends an abandoned node.

Everything here but ``build`` runs on nodes as one file, with Python 3.8 or later and its standard library; ``cryptography`` is
needed for shipping and restoring only.
"""
