"""OpenAI wire objects."""
