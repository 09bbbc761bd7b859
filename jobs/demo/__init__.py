"""The sample's jobs on all three queues, in one process, with books that must balance: `make demo`."""
