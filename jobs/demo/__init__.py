"""The sample's jobs on all three queues, in one process and without any server: `make demo` checks the books."""
