"""Moving a job safely: queues, their topology, publisher, consumer, settlement, both brokers."""
