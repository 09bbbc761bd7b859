"""What differs between RabbitMQ 3.10 and 4.x where the kit depends on it?

Every difference is here, with its source, and so is each constant that exists because of one. "Seen" means
tried on 3.10.8 and 4.0.5; `tests/integration/test_versions.py` shows it on the broker at hand.

Returns to a queue
    A queue without a delivery limit
        3.10    has none
        4.x     takes 20: the 21st delivery dead-letters the message, or drops it
        kit     declares a limit on every queue, UNREACHABLE_DELIVERY_LIMIT where nothing but people return
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.0.1.md
    A delivery limit of -1
        3.10    is reached at the first return (seen); a policy with it is refused
        4.x     means none
        kit     never declares it
        source  as above
    What counts towards the limit
        3.10    every return, of whatever kind
        4.x     the same up to 4.2; from 4.3 only `basic.reject` and lost consumers, not `basic.nack`
        kit     returns with `basic.nack`, so that from 4.3 a drain costs a job nothing
        source  https://github.com/rabbitmq/rabbitmq-server/discussions/18226
    The header `x-delivery-count`
        3.10    is on every delivery, 0 on the first one
        4.x     is on redeliveries only (since 3.12)
        kit     does not read it, and copies no header of the broker's into a retry
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/3.12.0.md

Dead letters
    The header `x-death` on a message that a client publishes
        3.10    is read, and counted on
        4.x     is not
        kit     publishes none; attempts are counted in its own headers
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.0.1.md
    Dead-lettering at least once
        3.10    needs the feature flag `stream_queue`, which is on unless the cluster was made before 3.9
        4.x     always works: a node does not start without that flag
        kit     asks for it in every declaration, and cannot see the flag
        source  https://www.rabbitmq.com/docs/3.13/quorum-queues#dead-lettering

Sending
    The largest message by default
        3.10    128 MiB
        4.x     16 MiB
        kit     sends 64 KiB of arguments at most, unless JOBS_PAYLOAD_LIMIT says otherwise
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.0.1.md
    The refusal of a larger one
        3.10    "message size N larger than max size M", by the setting `max_message_size` as it was when the
                channel opened
        4.x     "message size N is larger than configured max size M", by the persistent term of that name
                as it is now
        kit     reads both with TOO_LARGE
        source  check_msg_size in
                https://github.com/rabbitmq/rabbitmq-server/blob/v4.0.5/deps/rabbit/src/rabbit_channel.erl
    The smallest frame that a client may ask for
        3.10    4096 bytes
        4.x     8192 from 4.1
        kit     leaves it to pika, which takes what the broker offers
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.1.0.md

Consuming
    A queue that is deleted and declared anew at once
        3.10    its consumer is not told and waits for ever (seen)
        4.x     its consumer is cancelled (seen)
        kit     connects anew when it is cancelled, and asks every few seconds as well: `watch.py`
        source  tests/integration/test_versions.py
    A delivery that is held longer than the broker's `consumer_timeout`
        3.10    closes the channel
        4.x     the same up to 4.2; from 4.3 the consumer is cancelled
        kit     takes either for the loss of all that it holds, and connects anew
        source  https://github.com/rabbitmq/rabbitmq-server/releases/tag/v4.3.7
    Where that timeout is set
        3.10    for the whole broker
        4.x     for a queue as well, by the policy key CONSUMER_TIMEOUT (since 3.12)
        kit     refuses to start under a policy below JOBS_BROKER_CONSUMER_TIMEOUT
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/3.12.0.md
    A prefetch for a whole channel, and queues that are neither durable nor exclusive
        3.10    are allowed
        4.x     are refused by default from 4.3
        kit     uses neither
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/4.3.0.md

Management
    What a policy can apply to
        3.10    "queues", "exchanges" or "all"
        4.x     kinds of queues as well (since 3.12)
        kit     looks at those in APPLIES_TO_QUORUM_QUEUES
        source  https://github.com/rabbitmq/rabbitmq-server/blob/main/release-notes/3.12.0.md
    Counts in the HTTP API
        3.10    are there
        4.x     are deprecated (`management_metrics_collection`), and can be switched off
        kit     shows as unknown what is not there
        source  https://www.rabbitmq.com/release-information/deprecated-features-list
"""

from __future__ import annotations

import re
from typing import Final

UNREACHABLE_DELIVERY_LIMIT: Final = 1_000_000
"""For a queue that people look into: one who does it 20 times must not move or destroy what lies there."""

TOO_LARGE: Final = re.compile(r"message size (\d+) (?:is )?larger than (?:configured )?max size (\d+)")
"""The broker's words when it closes a channel over a message: its size, and the largest that is taken."""

CONSUMER_TIMEOUT: Final = "consumer-timeout"
"""A policy's key, in milliseconds."""

APPLIES_TO_QUORUM_QUEUES: Final = ("all", "queues", "quorum_queues")
"""Of what policies can apply to, that which the kit's queues are among."""
