"""Private RabbitMQ and PostgreSQL instances for this clone: to test with (`test`) and to play with (`dev`).

They come from a Docker engine where one answers, otherwise from Debian's packages; with `--rabbitmq 4` on
Debian 12, whose own is older, the broker comes from a newer Debian in a folder. Nothing here touches a system
instance: own ports, own data, own cookie, own port mapper. Run with any Python 3.11 or later, before there is
a virtual environment:

    python3 -m deploy.services [--instance NAME] [--rabbitmq 4] COMMAND …

The commands are start, stop, restart, kill, status, check, clean, rabbitmqctl and run.
"""
