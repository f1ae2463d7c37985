"""Starts the setup on a node: ``python3 setup.py``, in the folder where ``hostler_setup/`` and ``options.json`` lie."""

import runpy

runpy.run_module("hostler_setup", run_name="__main__", alter_sys=True)
