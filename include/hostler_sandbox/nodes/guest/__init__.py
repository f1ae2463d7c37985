"""What runs on a node: stand-ins for system programs. Standard library only, relative imports only, fast to start.

A node's program starts ``launch.py`` with a bare interpreter, so this package must not import the rest of the sandbox.
"""
