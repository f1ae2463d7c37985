"""The async half: class paths and arguments are stable across versions, because they are stored in the metadata database."""
