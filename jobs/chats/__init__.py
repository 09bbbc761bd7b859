"""Chats and their summaries, by a model or from their own sentences."""
