"""One file a step, in order; a step that was released never changes again."""
