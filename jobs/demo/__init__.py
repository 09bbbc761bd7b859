"""The main job on the embedded default, with books that must balance: `make demo`."""
